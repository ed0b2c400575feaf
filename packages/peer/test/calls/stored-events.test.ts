import { manualClock } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import { createStoredEvents } from '../../src/calls/stored-events.ts'
import { DEFAULTS } from '../../src/defaults.ts'
import type { Incoming } from '../../src/delivery/inbox.ts'
import { createMemoryJournal } from '../../src/journal/memory-journal.ts'
import { createTelemetry } from '../../src/telemetry/telemetry.ts'

async function scene() {
  const clock = manualClock()
  const journal = createMemoryJournal({ limits: DEFAULTS })
  await journal.open()
  const life = () =>
    createStoredEvents({
      journal,
      responder: { acknowledge: () => undefined } as never,
      clock,
      tunables: { ...DEFAULTS, storedEventsPerSender: 2 },
      telemetry: createTelemetry({ clock }),
      deliver: () => undefined,
    })
  const event = (from: string, id: string) =>
    ({ from, leaf: id, expiresAt: clock.now() + 1000, header: { message_id: id, target_capability: 'x' } }) as Incoming
  return { clock, life, event, settled: () => new Promise((resolve) => setImmediate(resolve)) }
}

describe('stored events of one sender', () => {
  it('fill its share and no more, in the next life too, until they expire', async () => {
    const { clock, life, event, settled } = await scene()
    const busy = expect.objectContaining({ code: 'BUSY', message: expect.stringContaining('of loud') })
    const first = life()
    for (const id of ['1', '2', '1']) first.receive(event('loud', id), null)
    expect(() => first.receive(event('loud', '3'), null)).toThrow(busy)
    first.receive(event('quiet', '1'), null)
    await settled()
    const second = life()
    await second.load()
    second.handOn()
    expect(() => second.receive(event('loud', '3'), null)).toThrow(busy)
    second.receive(event('quiet', '2'), null)
    await settled()
    await clock.timeline.advance(1001)
    second.sweep()
    second.receive(event('loud', '3'), null)
  })
})
