import { cpuSince, readCpu } from '../measure/cpu.ts'
import { quantile } from '../measure/statistics.ts'
import type { Bench, Figures, Order } from './scenario.ts'

/** One stream of `count` frames at a time, from the server to its reader; their order is checked. */
export async function stream({ client }: Bench, order: Order & { measure: 'stream' }): Promise<Figures> {
  const once = async (): Promise<{ perSecond: number; firstMs: number }> => {
    const from = performance.now()
    let firstMs = Number.NaN
    let next = 0
    await client.stream(order.count, ({ seq }) => {
      if (next === 0) firstMs = performance.now() - from
      if (seq !== next++) throw new Error(`frame ${seq} came where ${next - 1} was due`)
    })
    if (next !== order.count) throw new Error(`${next} of ${order.count} frames came`)
    return { perSecond: (1000 * next) / (performance.now() - from), firstMs }
  }
  await once()
  const before = readCpu(order.pids)
  const runs: Awaited<ReturnType<typeof once>>[] = []
  for (const end = performance.now() + order.ms; performance.now() < end; ) runs.push(await once())
  const used = cpuSince(before, order.pids)
  return {
    perSecond: quantile(
      runs.map((run) => run.perSecond),
      0.5,
    ),
    firstMs: quantile(
      runs.map((run) => run.firstMs),
      0.5,
    ),
    cpuUs: used.cpuUs / (runs.length * order.count),
    otherWork: used.otherWork,
  }
}
