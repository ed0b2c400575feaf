import { setTimeout as sleep } from 'node:timers/promises'
import { cpuSince, readCpu } from '../measure/cpu.ts'
import { envelope } from '../payload.ts'
import type { Bench, Figures, Order } from './scenario.ts'

/** As many calls as it takes to keep `inFlight` of them open. */
export async function throughput({ client }: Bench, order: Order & { measure: 'throughput' }): Promise<Figures> {
  const request = envelope(1)
  const until = async (end: number) => {
    let done = 0
    let failed = 0
    const lane = async () => {
      while (performance.now() < end) {
        try {
          await client.request(request)
          done++
        } catch {
          failed++
          await sleep(1)
        }
      }
    }
    await Promise.all(Array.from({ length: order.inFlight }, lane))
    return { done, failed }
  }
  await until(performance.now() + order.warmMs)
  const before = readCpu(order.pids)
  const start = performance.now()
  const { done, failed } = await until(start + order.ms)
  const seconds = (performance.now() - start) / 1000
  const used = cpuSince(before, order.pids)
  return { perSecond: done / seconds, failed, cpuUs: used.cpuUs / done, otherWork: used.otherWork }
}
