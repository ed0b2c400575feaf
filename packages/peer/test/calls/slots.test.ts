import { isHermesError } from '@hermes-peer/protocol'
import { manualClock } from '@hermes-peer/testkit'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createSlots } from '../../src/calls/slots.ts'

function slotting(perNode = 100, mostWaiting = 10) {
  const clock = manualClock()
  const slots = createSlots({ perNode, mostWaiting, clock, ageMs: 10_000 })
  const entered: string[] = []
  const releases = new Map<string, () => void>()
  const take = (name: string, { agent = 'a', most = 2, priority = 3 } = {}) =>
    slots.take(agent, most, priority, (release) => {
      entered.push(name)
      releases.set(name, release)
    })
  const release = (name: string) => (releases.get(name) as () => void)()
  return { slots, entered, take, release, advance: (ms: number) => clock.timeline.advance(ms) }
}

describe('places for calls in flight', () => {
  it('are given at once up to the bound of the agent, then in line', () => {
    const { take, entered, release, slots } = slotting()
    for (const name of ['1', '2', '3', '4']) take(name)
    expect(entered).toEqual(['1', '2'])
    release('1')
    expect(entered).toEqual(['1', '2', '3'])
    release('3')
    release('2')
    expect(entered).toEqual(['1', '2', '3', '4'])
    release('4')
    expect(slots.inFlight).toBe(0)
  })

  it('are given back once', () => {
    const { take, entered, release, slots } = slotting()
    for (const name of ['1', '2', '3', '4']) take(name)
    release('1')
    release('1')
    expect(entered).toEqual(['1', '2', '3'])
    expect(slots.inFlight).toBe(2)
  })

  it('go to the most urgent in line, first come first served among equals', () => {
    const { take, entered, release } = slotting()
    take('x', { most: 1 })
    for (const [name, priority] of [
      ['low', 1],
      ['mid', 3],
      ['mid2', 3],
      ['high', 5],
    ] as const)
      take(name, { most: 1, priority })
    for (const name of ['x', 'high', 'mid', 'mid2']) release(name)
    expect(entered).toEqual(['x', 'high', 'mid', 'mid2', 'low'])
  })

  it('go to who has waited, too: a call rises by one level per 10 s, so that none starves', async () => {
    const { take, entered, release, advance } = slotting()
    take('x', { most: 1 })
    take('low', { most: 1, priority: 1 })
    await advance(19_999)
    take('mid', { most: 1, priority: 3 })
    release('x')
    expect(entered.at(-1)).toBe('mid')
    await advance(1)
    take('mid2', { most: 1, priority: 3 })
    release('mid')
    expect(entered.at(-1)).toBe('low')
  })

  it('at the bound of the node are given in turns: one slow agent’s line takes no more than its share', () => {
    const { take, entered, release } = slotting(1)
    take('x', { agent: 'x' })
    for (const name of ['a1', 'a2', 'a3', 'a4']) take(name, { agent: 'a' })
    for (const name of ['b1', 'b2']) take(name, { agent: 'b' })
    take('c1', { agent: 'c' })
    for (const name of ['x', 'a1', 'b1', 'c1', 'a2', 'b2', 'a3']) release(name)
    expect(entered).toEqual(['x', 'a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4'])
  })

  it('of one agent do not hold up another', () => {
    const { take, entered } = slotting()
    for (const name of ['a1', 'a2', 'a3']) take(name)
    take('b1', { agent: 'b' })
    expect(entered).toEqual(['a1', 'a2', 'b1'])
  })

  it('are bounded for the node too; a place that comes free goes to whoever waits', () => {
    const { take, entered, release } = slotting(2)
    take('a1', { agent: 'a' })
    take('b1', { agent: 'b' })
    take('c1', { agent: 'c' })
    take('d1', { agent: 'd' })
    expect(entered).toEqual(['a1', 'b1'])
    release('a1')
    expect(entered).toEqual(['a1', 'b1', 'c1'])
    release('b1')
    expect(entered).toEqual(['a1', 'b1', 'c1', 'd1'])
  })

  it('are refused with QUEUE_FULL when too many wait', () => {
    const { take } = slotting(100, 2)
    for (const name of ['1', '2', '3', '4']) take(name)
    try {
      take('5')
      expect.unreachable()
    } catch (error) {
      if (!isHermesError(error)) throw error
      expect(error.code).toBe('QUEUE_FULL')
      expect(error.message).toContain('a')
    }
    expect(() => take('b1', { agent: 'b' })).not.toThrow()
  })

  it('are not given to who has left the line', () => {
    const { take, entered, release, slots } = slotting()
    take('1', { most: 1 })
    const leave = take('2', { most: 1 })
    take('3', { most: 1 })
    leave()
    leave()
    release('1')
    expect(entered).toEqual(['1', '3'])
    release('3')
    expect(slots.inFlight).toBe(0)
  })

  it('leaving a line does not give back a place', () => {
    const { take, slots } = slotting()
    const leave = take('1')
    leave()
    expect(slots.inFlight).toBe(1)
  })

  it('never exceed a bound and never stand empty while somebody may enter', () => {
    const agents = ['a', 'b', 'c']
    const step = fc.oneof(
      fc.record({ take: fc.constantFrom(...agents), priority: fc.integer({ min: 1, max: 5 }) }),
      fc.record({ release: fc.nat(20) }),
      fc.record({ leave: fc.nat(20) }),
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const [perNode, most] = [4, 2]
        const slots = createSlots({ perNode, mostWaiting: 100, clock: manualClock(), ageMs: 10_000 })
        const active: { agent: string; release: () => void }[] = []
        const waiting: { agent: string; leave: () => void; in: boolean }[] = []
        for (const one of steps) {
          if ('take' in one) {
            const entry = { agent: one.take, leave: () => {}, in: false }
            entry.leave = slots.take(one.take, most, one.priority, (release) => {
              entry.in = true
              active.push({ agent: one.take, release })
              const at = waiting.indexOf(entry)
              if (at >= 0) waiting.splice(at, 1)
            })
            if (!entry.in) waiting.push(entry)
          } else if ('release' in one) active.splice(one.release, 1)[0]?.release()
          else waiting.splice(one.leave, 1)[0]?.leave()
          expect(slots.inFlight).toBe(active.length)
          expect(active.length).toBeLessThanOrEqual(perNode)
          for (const agent of agents) {
            const own = active.filter((other) => other.agent === agent).length
            expect(own).toBeLessThanOrEqual(most)
            const waits = waiting.some((other) => other.agent === agent)
            if (waits) expect(own === most || active.length === perNode, `${agent} waits for nothing`).toBe(true)
          }
        }
      }),
      { numRuns: 500 },
    )
  })
})
