import { setTimeout as sleep } from 'node:timers/promises'
import { epochMs } from '../measure/clock.ts'
import { envelope } from '../payload.ts'
import type { Bench, Figures, Order } from './scenario.ts'

/** Calls a capability that nobody serves yet until somebody does. `atMs` is a time of day: compare it with the server's. */
export async function discovery({ client, notify }: Bench, order: Order & { measure: 'discovery' }): Promise<Figures> {
  notify('discovering')
  const request = envelope(2)
  for (const end = performance.now() + order.ms; ; ) {
    try {
      await client.request(request, order.capability)
      return { atMs: epochMs() }
    } catch (error) {
      if (performance.now() > end) throw error
      await sleep(2)
    }
  }
}
