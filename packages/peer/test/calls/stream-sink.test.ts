import { HermesError } from '@hermes-peer/protocol'
import { manualClock, seededRandom } from '@hermes-peer/testkit'
import { expect, it } from 'vitest'
import { errorOutcome } from '../../src/calls/outcomes.ts'
import { createStreamSink } from '../../src/calls/stream-sink.ts'
import { DEFAULTS } from '../../src/defaults.ts'

it('the end of a stream waits for its reader as long as the job may take, whatever time its header claims', () => {
  const clock = manualClock()
  const waits: (number | undefined)[] = []
  const stream = {
    link: {},
    leaf: 'leaf',
    out: { chain: { count: 0, hash: '00' } },
    onOver: () => undefined,
    end: async (_: Uint8Array, withinMs?: number) => void waits.push(withinMs),
  }
  const sink = createStreamSink({
    stream: stream as never,
    incoming: {
      header: { content_type: 'application/json', timeout_ms: Number.MAX_SAFE_INTEGER },
      receivedAt: clock.monotonic(),
    } as never,
    outbox: { seal: () => ({ frame: new Uint8Array(0) }) } as never,
    clock,
    random: seededRandom(1),
    tunables: DEFAULTS,
  })
  sink.bind({ abort: () => undefined, expire: () => undefined, deadline: clock.monotonic() + 60_000 })
  sink.end(errorOutcome(new HermesError('TIMEOUT'), 'application/json'))
  expect(waits).toEqual([60_000])
})
