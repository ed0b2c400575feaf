import { big } from './big.ts'
import { discovery } from './discovery.ts'
import { failover } from './failover.ts'
import { journal } from './journal.ts'
import { latency } from './latency.ts'
import type { Bench, Figures, Order } from './scenario.ts'
import { stream } from './stream.ts'
import { throughput } from './throughput.ts'

export function measure(bench: Bench, order: Order): Promise<Figures> {
  switch (order.measure) {
    case 'latency':
      return latency(bench, order)
    case 'throughput':
      return throughput(bench, order)
    case 'stream':
      return stream(bench, order)
    case 'big':
      return big(bench, order)
    case 'journal':
      return journal(order)
    case 'discovery':
      return discovery(bench, order)
    case 'failover':
      return failover(bench, order)
  }
}
