import { HermesError } from '@hermes-peer/protocol'
import { manualClock } from '@hermes-peer/testkit'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DEFAULTS } from '../../src/defaults.ts'
import { createSessions } from '../../src/sessions/table.ts'
import { createTelemetry } from '../../src/telemetry/telemetry.ts'
import { codeOf } from '../code-of.ts'

const MINUTE = 60_000
function making(tuning: Partial<Record<keyof typeof DEFAULTS, number>> = {}) {
  const clock = manualClock()
  const ended: string[] = []
  const sessions = createSessions({
    clock,
    tunables: { ...DEFAULTS, ...tuning },
    telemetry: createTelemetry({ clock }),
    ended: (mark, { code }) => ended.push(`${mark.id} ${code}`),
  })
  return { clock, sessions, ended, advance: (ms: number) => clock.timeline.advance(ms) }
}

describe('session marks', () => {
  it('begin with the first envelope of their id, are kept by agent and id, and end after 15 min without anything', async () => {
    const { sessions, ended, advance } = making()
    const mark = sessions.admit('a', 's1', 1)
    expect(sessions.admit('a', 's1', 1)).toBe(mark)
    expect(sessions.admit('b', 's1', 1)).not.toBe(mark)
    await advance(15 * MINUTE - 1)
    expect(mark.signal.aborted).toBe(false)
    sessions.begin(sessions.admit('a', 's1', 1))()
    await advance(1)
    expect(ended).toEqual(['s1 SESSION_CLOSED'])
    expect(sessions.list()).toEqual([mark])
    await advance(15 * MINUTE - 1)
    expect(mark.signal.aborted).toBe(true)
    expect(codeOf(() => sessions.admit('a', 's1', 1))).toBe('SESSION_CLOSED')
  })

  it('F-38 idle collector kills working sessions: anything in flight counts as active, however long', async () => {
    const { sessions, advance } = making()
    const mark = sessions.admit('a', 's1', 1)
    const ends = [sessions.begin(mark), sessions.begin(mark)]
    await advance(24 * 60 * MINUTE)
    ends[0]?.()
    await advance(24 * 60 * MINUTE)
    expect(mark.signal.aborted).toBe(false)
    ends[1]?.()
    ends[1]?.()
    await advance(15 * MINUTE - 1)
    expect(mark.signal.aborted).toBe(false)
    await advance(1)
    expect(mark.signal.aborted).toBe(true)
  })

  it('F-38 a lease outlasts the idle time, is renewed, ends what runs when it is not, and cannot be renewed after', async () => {
    const { sessions, ended, advance } = making({ sessionIdleMs: 3000 })
    const mark = sessions.admit('a', 's1', 1)
    sessions.lease('a', 's1', 10_000)
    await advance(8000)
    expect(mark.signal.aborted).toBe(false)
    sessions.lease('a', 's1', 10_000)
    const told: string[] = []
    sessions.begin(mark, ({ code }) => told.push(code))
    await advance(9999)
    expect(told).toEqual([])
    await advance(1)
    expect(told).toEqual(['LEASE_EXPIRED'])
    expect(ended).toEqual(['s1 LEASE_EXPIRED'])
    expect(codeOf(() => sessions.lease('a', 's1', 10_000))).toBe('LEASE_EXPIRED')
    expect(codeOf(() => sessions.admit('a', 's1', 1))).toBe('LEASE_EXPIRED')
  })

  it.each([0, -1, 1.5, 86_400_001, Number.NaN, 'long'])('a lease of %j is refused', (leaseMs) => {
    const { sessions } = making()
    sessions.admit('a', 's1', 1)
    expect(codeOf(() => sessions.lease('a', 's1', leaseMs as number))).toBe('INVALID_PAYLOAD')
  })

  it('are bounded per agent and in all, with an error that names the bound, and free their place', () => {
    const { sessions } = making({ sessionsPerPeer: 3, sessionsPerNode: 5 })
    for (const id of ['1', '2', '3']) sessions.admit('a', id, 1)
    expect(() => sessions.admit('a', '4', 1)).toThrow('3 sessions with a are open, the bound is 3')
    expect(() => sessions.open('a', '4')).toThrow('the bound is 3')
    sessions.admit('b', '1', 1)
    sessions.admit('b', '2', 1)
    expect(() => sessions.admit('c', '1', 1)).toThrow('5 sessions are open')
    sessions.close('a', '1', new HermesError('SESSION_CLOSED'))
    sessions.admit('a', '4', 1)
  })

  it('F-37 session table only cleaned by polite clients: 5,000 that vanish leave neither marks nor timers', async () => {
    const { sessions, clock, advance } = making()
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 5000; i++) sessions.begin(sessions.admit(`agent-${i % 50}`, `s${round}-${i}`, 1))()
      expect(sessions.list()).toHaveLength(5000)
      await advance(15 * MINUTE)
      expect(sessions.list()).toEqual([])
      expect(clock.timeline.pending).toBe(0)
    }
  })

  it('of an earlier life of their opener end when it is back; those that we opened with it go on', () => {
    const { sessions } = making()
    const [old, own] = [sessions.admit('a', 's1', 1), sessions.open('a', 's2')]
    sessions.linked('a', 1)
    expect(old.signal.aborted).toBe(false)
    sessions.linked('a', 2)
    expect([old.signal.aborted, own.signal.aborted]).toEqual([true, false])
  })

  it('an ended id never comes back; closing what is not there keeps it from beginning', () => {
    const { sessions } = making()
    sessions.close('a', 's1', new HermesError('SESSION_CLOSED'))
    expect(codeOf(() => sessions.admit('a', 's1', 1))).toBe('SESSION_CLOSED')
    expect(codeOf(() => sessions.admit('b', 's1', 1))).toBe('OK')
  })

  it('whatever happens: an open one has something in flight, a lease, or was used within its idle time', async () => {
    const step = fc.oneof(
      fc.record({ use: fc.constantFrom('s1', 's2', 's3') }),
      fc.record({ end: fc.nat(5) }),
      fc.record({ lease: fc.constantFrom('s1', 's2', 's3'), ms: fc.integer({ min: 1, max: 3000 }) }),
      fc.record({ close: fc.constantFrom('s1', 's2', 's3') }),
      fc.record({ wait: fc.integer({ min: 1, max: 1500 }) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const { sessions, clock, advance } = making({ sessionIdleMs: 1000 })
        const model = new Map<string, { used: number; running: number; lease: number | undefined; over?: string }>()
        const running: { id: string; leave: () => void }[] = []
        const settle = () => {
          const now = clock.monotonic()
          for (const one of model.values()) {
            if (one.over) continue
            if (one.lease !== undefined) one.over = now >= one.lease ? 'LEASE_EXPIRED' : ''
            else if (one.running === 0 && now - one.used >= 1000) one.over = 'SESSION_CLOSED'
          }
        }
        for (const one of steps) {
          if ('use' in one) {
            const known = model.get(one.use) ?? { used: 0, running: 0, lease: undefined }
            model.set(one.use, known)
            const code = codeOf(() => {
              const mark = sessions.admit('a', one.use, 1)
              running.push({ id: one.use, leave: sessions.begin(mark) })
            })
            expect(code).toBe(known.over || 'OK')
            if (!known.over) Object.assign(known, { used: clock.monotonic(), running: known.running + 1 })
          } else if ('end' in one) {
            const [ended] = running.splice(one.end % Math.max(1, running.length), 1)
            ended?.leave()
            const known = ended && model.get(ended.id)
            if (known) Object.assign(known, { used: clock.monotonic(), running: known.running - 1 })
          } else if ('lease' in one) {
            const known = model.get(one.lease)
            const code = codeOf(() => sessions.lease('a', one.lease, one.ms))
            expect(code).toBe(known ? known.over || 'OK' : 'SESSION_CLOSED')
            if (known && !known.over) known.lease = clock.monotonic() + one.ms
          } else if ('close' in one) {
            sessions.close('a', one.close, new HermesError('SESSION_CLOSED'))
            const known = model.get(one.close) ?? { used: 0, running: 0, lease: undefined }
            known.over ||= 'SESSION_CLOSED'
            model.set(one.close, known)
          } else await advance(one.wait)
          settle()
          const open = [...model].filter(([, { over }]) => !over).map(([id]) => id)
          expect(
            sessions
              .list()
              .map(({ id }) => id)
              .sort(),
          ).toEqual(open.sort())
        }
      }),
      { numRuns: 300 },
    )
  })
})
