import { manualClock } from '@hermes-peer/testkit'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createAgeingQueue } from '../../src/calls/queue.ts'

interface Item {
  name: string
  priority: number
  since: number
}

function queueing(ageMs = 10_000) {
  const clock = manualClock()
  const queue = createAgeingQueue<Item>({ clock, ageMs })
  const push = (name: string, priority: number) => {
    const item = { name, priority, since: clock.monotonic() }
    queue.push(item)
    return item
  }
  const all = () => {
    const names: string[] = []
    for (let item = queue.shift(); item; item = queue.shift()) names.push(item.name)
    return names
  }
  return { clock, queue, push, all, advance: (ms: number) => clock.timeline.advance(ms) }
}

describe('waiting work', () => {
  it('starts by priority, 5 first', () => {
    const { push, all } = queueing()
    for (const priority of [3, 1, 5, 2, 4]) push(`p${priority}`, priority)
    expect(all()).toEqual(['p5', 'p4', 'p3', 'p2', 'p1'])
  })

  it('of one priority starts in the order it came', async () => {
    const { push, all, advance } = queueing()
    for (const name of ['a', 'b', 'c']) {
      push(name, 3)
      await advance(7000)
    }
    expect(all()).toEqual(['a', 'b', 'c'])
  })

  it('rises by one level per 10 s: what waits is never starved by what is more urgent', async () => {
    const { push, queue, advance } = queueing()
    push('old', 1)
    await advance(39_999)
    push('urgent', 5)
    expect(queue.shift()?.name).toBe('urgent')
    await advance(1)
    push('urgent too', 5)
    // Four levels up it is its equal, and came first.
    expect(queue.shift()?.name).toBe('old')
    expect(queue.shift()?.name).toBe('urgent too')
  })

  it('of two levels apart overtakes exactly after 20 s', async () => {
    const { push, all, advance } = queueing()
    push('normal', 3)
    await advance(19_999)
    push('urgent', 5)
    expect(all()).toEqual(['urgent', 'normal'])
    push('normal', 3)
    await advance(20_000)
    push('urgent', 5)
    expect(all()).toEqual(['normal', 'urgent'])
  })

  it('goes on rising above 5, so that the oldest comes first among the old', async () => {
    const { push, all, advance } = queueing()
    push('older', 1)
    await advance(60_000)
    push('old', 5)
    await advance(10_000)
    push('new', 5)
    expect(all()).toEqual(['older', 'old', 'new'])
  })

  it('can be taken back, once', () => {
    const { push, queue, all } = queueing()
    const a = push('a', 3)
    push('b', 3)
    expect(queue.size).toBe(2)
    expect(queue.remove(a)).toBe(true)
    expect(queue.remove(a)).toBe(false)
    expect(queue.size).toBe(1)
    expect(all()).toEqual(['b'])
    expect(queue.size).toBe(0)
    expect(queue.shift()).toBeUndefined()
  })

  it('nothing overtakes its equals, nothing is lost, and what starts is what the rule says', async () => {
    const step = fc.oneof(
      fc.record({ push: fc.integer({ min: 1, max: 5 }) }),
      fc.record({ wait: fc.integer({ min: 1, max: 15_000 }) }),
      fc.record({ shift: fc.constant(true) }),
      fc.record({ remove: fc.nat(20) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const { queue, push, advance, clock } = queueing()
        let model: Item[] = []
        let count = 0
        for (const one of steps) {
          if ('push' in one) model.push(push(`w${count++}`, one.push))
          else if ('wait' in one) await advance(one.wait)
          else if ('remove' in one) {
            const item = model[one.remove]
            if (item) expect(queue.remove(item)).toBe(true)
            model = model.filter((other) => other !== item)
          } else {
            const rank = (item: Item) => item.priority + Math.floor((clock.monotonic() - item.since) / 10_000)
            const best = model.toSorted((a, b) => rank(b) - rank(a) || a.since - b.since)[0]
            const shifted = queue.shift()
            expect(shifted && rank(shifted)).toBe(best && rank(best))
            const equals = model.filter((other) => shifted && other.priority === shifted.priority)
            expect(shifted).toBe(equals[0])
            model = model.filter((other) => other !== shifted)
          }
          expect(queue.size).toBe(model.length)
        }
      }),
      { numRuns: 200 },
    )
  })
})
