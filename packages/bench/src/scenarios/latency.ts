import { cpuSince, readCpu } from '../measure/cpu.ts'
import { quantile } from '../measure/statistics.ts'
import { envelope } from '../payload.ts'
import type { Bench, Figures, Order } from './scenario.ts'

/** One call at a time. */
export async function latency({ client }: Bench, order: Order & { measure: 'latency' }): Promise<Figures> {
  const request = envelope(1)
  for (const end = performance.now() + order.warmMs; performance.now() < end; ) await client.request(request)
  const times: number[] = []
  const before = readCpu(order.pids)
  const start = performance.now()
  for (let from = start; from - start < order.ms; ) {
    await client.request(request)
    const now = performance.now()
    times.push((now - from) * 1000)
    from = now
  }
  const used = cpuSince(before, order.pids)
  return {
    p50Us: quantile(times, 0.5),
    p99Us: quantile(times, 0.99),
    cpuUs: used.cpuUs / times.length,
    otherWork: used.otherWork,
  }
}
