import { quantile } from '../measure/statistics.ts'
import { bigText, envelope } from '../payload.ts'
import type { Bench, Figures, Order } from './scenario.ts'

/** One large payload at a time, there and back. */
export async function big({ client }: Bench, order: Order & { measure: 'big' }): Promise<Figures> {
  const request = envelope(1)
  const rest = JSON.stringify({ ...request, body: { text: '' } }).length
  request.body.text = bigText(order.bytes - rest)
  for (let warm = 0; warm < 3; warm++) {
    const answer = await client.request(request)
    if (answer.body.text.length !== request.body.text.length) throw new Error('the answer is not what was sent')
  }
  const times: number[] = []
  for (const start = performance.now(); performance.now() - start < order.ms || times.length < 5; ) {
    const from = performance.now()
    await client.request(request)
    times.push(performance.now() - from)
  }
  return { ms: quantile(times, 0.5) }
}
