import { setTimeout as sleep } from 'node:timers/promises'
import { within } from '../measure/clock.ts'
import { envelope } from '../payload.ts'
import type { Bench, Figures, Order } from './scenario.ts'

/**
 * Open loop: the same number of calls each second whatever comes back, while the server that answers most is killed.
 * A call fails when it rejects or takes longer than `timeoutMs`.
 */
export async function failover({ client, notify }: Bench, order: Order & { measure: 'failover' }): Promise<Figures> {
  await client.knows(2)
  const request = envelope(3)
  const answered = new Map<string, number>()
  const okAt: number[] = []
  const failedAt: number[] = []
  const open = new Set<Promise<void>>()
  let killedAt = Number.NaN
  let sent = 0

  const call = async () => {
    try {
      const { by = 'unknown' } = await within(order.timeoutMs, client.request(request))
      okAt.push(performance.now())
      answered.set(by, (answered.get(by) ?? 0) + 1)
    } catch {
      failedAt.push(performance.now())
    }
  }
  for (const start = performance.now(); performance.now() - start < order.ms; await sleep(2)) {
    const elapsed = performance.now() - start
    for (; sent < (elapsed / 1000) * order.rate; sent++) {
      const one: Promise<void> = call().then(() => void open.delete(one))
      open.add(one)
    }
    if (Number.isNaN(killedAt) && elapsed >= order.killAfterMs) {
      killedAt = performance.now()
      notify('kill', busiest(answered))
    }
  }
  await Promise.all(open)

  let gapMs = 0
  okAt.forEach((at, i) => {
    if (i > 0) gapMs = Math.max(gapMs, at - (okAt[i - 1] ?? at))
  })
  const last = failedAt.at(-1)
  return { sent, failed: failedAt.length, gapMs, lastFailureMs: last === undefined ? 0 : last - killedAt }
}

function busiest(answered: ReadonlyMap<string, number>): string {
  const [top] = [...answered].sort((a, b) => b[1] - a[1])
  if (top === undefined) throw new Error('no server has answered before one was to be killed')
  return top[0]
}
