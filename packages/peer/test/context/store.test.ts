import { manualClock, seededRandom } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import { createContextStore } from '../../src/context/store.ts'
import { DEFAULTS } from '../../src/defaults.ts'
import { codeOf } from '../code-of.ts'

function storing(tuning: Partial<Record<keyof typeof DEFAULTS, number>> = {}, mostEach = 1000) {
  const clock = manualClock()
  const store = createContextStore({
    agentId: 'me',
    clock,
    random: seededRandom(1),
    tunables: { ...DEFAULTS, ...tuning },
    mostEach,
  })
  const offer = (data: unknown, agents: string[] = [], ttlMs = 1000) => store.offer(data, { agents, ttlMs })
  return { clock, store, offer, advance: (ms: number) => clock.timeline.advance(ms) }
}

describe('offered context', () => {
  it('has 128 random bits for a name, and is for those it was granted to only', () => {
    const { store, offer } = storing()
    const ref = offer({ a: 1 }, ['b'])
    expect(ref).toEqual({ ref: expect.stringMatching(/^[0-9a-f]{32}$/), agent_id: 'me', size: 7 })
    expect(offer({ a: 1 }).ref).not.toBe(ref.ref)
    expect(store.read(ref.ref, 'b')).toEqual({ a: 1 })
    const refusals = [ref.ref, '0'.repeat(32), undefined, {}, 5].map((name) => codeOf(() => store.read(name, 'c')))
    expect(new Set(refusals)).toEqual(new Set(['CONTEXT_GONE']))
    expect(store.grant(ref.ref, 'c')).toBe(true)
    expect(store.read(ref.ref, 'c')).toEqual({ a: 1 })
    expect(store.grant('0'.repeat(32), 'c')).toBe(false)
  })

  it('is what was offered, whatever its owner changes later', () => {
    const { store, offer } = storing()
    const data = { list: [1] }
    const { ref } = offer(data, ['b'])
    data.list.push(2)
    expect(store.read(ref, 'b')).toEqual({ list: [1] })
  })

  it('is refused where the answer that carries it could not hold it', () => {
    const { offer, store } = storing({}, 1_000_000)
    const keys = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, i]))
    const deep = (levels: number): unknown => (levels === 0 ? 1 : [deep(levels - 1)])
    for (const data of [keys(9_998), deep(31)]) expect(codeOf(() => offer(data))).toBe('INVALID_PAYLOAD')
    expect(store.bytes).toBe(0)
    for (const data of [keys(9_997), deep(30)]) expect(codeOf(() => offer(data))).toBe('OK')
  })

  it('ends with its time, to the millisecond, and when it is withdrawn; nothing of it is kept then', async () => {
    const { store, offer, advance } = storing()
    const { ref } = offer('x', ['b'])
    await advance(999)
    expect(codeOf(() => store.read(ref, 'b'))).toBe('OK')
    await advance(1)
    expect(codeOf(() => store.read(ref, 'b'))).toBe('CONTEXT_GONE')
    expect(store.grant(ref, 'b')).toBe(false)
    store.sweep()
    expect(store.bytes).toBe(0)
    const other = offer('y', ['b'])
    store.withdraw(other.ref)
    store.withdraw(other.ref)
    expect(store.bytes).toBe(0)
    expect(codeOf(() => store.read(other.ref, 'b'))).toBe('CONTEXT_GONE')
  })

  it('is bounded: each, in all, and in number; what has expired gives its room back', async () => {
    const { store, offer, advance } = storing({ contextBytes: 2500, contextRefs: 4 })
    const text = (bytes: number) => 'x'.repeat(bytes - 2)
    expect(() => offer(text(1001))).toThrow('the context has 1001 bytes, the limit is 1000')
    for (let i = 0; i < 2; i++) offer(text(1000))
    expect(() => offer(text(501))).toThrow('the bounds are 4 and 2500')
    offer(text(100))
    offer(text(100))
    expect(codeOf(() => offer(text(100)))).toBe('PAYLOAD_TOO_LARGE')
    expect(store.bytes).toBe(2200)
    await advance(1000)
    offer(text(1000))
    expect(store.bytes).toBe(1000)
  })

  it.each([10n, new Date(0), () => 1, Number.NaN])('%s is no plain data', (data) => {
    const { offer } = storing()
    expect(codeOf(() => offer(data))).toBe('INVALID_PAYLOAD')
  })
})
