import { HermesError } from '@hermes-peer/protocol'
import { manualClock, seededRandom } from '@hermes-peer/testkit'
import { expect, it } from 'vitest'
import { DEFAULTS } from '../../src/defaults.ts'
import { type OpenSessionParts, openSession } from '../../src/open-session.ts'
import { createSessions } from '../../src/sessions/table.ts'

it('is begun or given up within its time in all, however that is spent on the way there and on the lease', async () => {
  const clock = manualClock()
  const { timeline } = clock
  const timeout = () => new HermesError('TIMEOUT')
  const telemetry = { emit: () => undefined, wants: () => false } as never
  const table = createSessions({ clock, tunables: DEFAULTS, telemetry })
  const opened = openSession('provider', { leaseMs: 60_000, timeoutMs: 3_000 }, {
    runtime: () => ({
      directory: { reach: () => timeline.sleep('2s') },
      sessions: {
        table,
        // The agent does not answer.
        tell: (_agent: string, _id: string, _input: unknown, timeoutMs: number) =>
          timeline.sleep(timeoutMs).then(() => Promise.reject(timeout())),
      },
    }),
    tunables: DEFAULTS,
    random: seededRandom(1),
    limited: ({ timeoutMs = 10_000 }: { timeoutMs?: number }, work: (signal: AbortSignal) => Promise<unknown>) =>
      Promise.race([
        work(new AbortController().signal),
        timeline.sleep(timeoutMs).then(() => Promise.reject(timeout())),
      ]),
    request: () => Promise.reject(new Error('nothing is asked for')),
  } as unknown as OpenSessionParts)
  await expect(timeline.runUntil(opened)).rejects.toMatchObject({ code: 'TIMEOUT' })
  expect(timeline.now()).toBe(3_000)
  expect(table.list()).toEqual([])
  // Nor does anything of it come to light later.
  await timeline.advance('5s')
  expect(table.list()).toEqual([])
})
