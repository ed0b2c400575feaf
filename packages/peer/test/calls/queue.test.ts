import { manualClock } from '@hermes-peer/testkit'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createAgeingQueue } from '../../src/calls/queue.ts'

interface Item {
  name: string
  priority: number
  since: number
  sender: string
}

function queueing(ageMs = 10_000) {
  const clock = manualClock()
  const queue = createAgeingQueue<Item>({ clock, ageMs })
  const push = (name: string, priority: number, sender = 'one') => {
    const item = { name, priority, sender, since: clock.monotonic() }
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

  it('of several senders starts in turns: one that asks for much holds up nobody', () => {
    const { push, all } = queueing()
    for (const name of ['g1', 'g2', 'g3', 'g4']) push(name, 3, 'greedy')
    for (const name of ['p1', 'p2']) push(name, 3, 'polite')
    push('o1', 3, 'other')
    expect(all()).toEqual(['g1', 'p1', 'o1', 'g2', 'p2', 'g3', 'g4'])
  })

  it('a backlog that has grown old does not push a newcomer to its end', async () => {
    const { push, queue, advance } = queueing()
    for (let i = 0; i < 100; i++) push(`g${i}`, 3, 'greedy')
    await advance(60_000)
    push('fresh', 3, 'polite')
    expect([queue.shift()?.name, queue.shift()?.name]).toEqual(['g0', 'fresh'])
  })

  it('no sender waits for more than one turn of each other one, none overtakes itself, and urgent work comes first', async () => {
    const step = fc.oneof(
      { weight: 4, arbitrary: fc.record({ push: fc.constantFrom(2, 3, 4), sender: fc.constantFrom('a', 'b', 'c') }) },
      { weight: 3, arbitrary: fc.record({ shift: fc.constant(true) }) },
      { weight: 1, arbitrary: fc.record({ wait: fc.integer({ min: 1, max: 12_000 }) }) },
      { weight: 1, arbitrary: fc.record({ remove: fc.nat(20) }) },
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 80 }), async (steps) => {
        const { queue, push, advance, clock } = queueing()
        let model: Item[] = []
        let count = 0
        /** Per item that waits: what others have started on its priority since it is its sender's first there. */
        let passedBy = new Map<Item, string[]>()
        for (const one of steps) {
          if ('push' in one) model.push(push(`w${count++}`, one.push, one.sender))
          else if ('wait' in one) await advance(one.wait)
          else if ('remove' in one) {
            const item = model[one.remove]
            if (item) expect(queue.remove(item)).toBe(true)
            model = model.filter((other) => other !== item)
          } else {
            const peeked = queue.peek()
            const shifted = queue.shift()
            expect(shifted).toBe(peeked)
            expect(shifted === undefined).toBe(model.length === 0)
            if (!shifted) continue
            const same = model.filter(({ priority }) => priority === shifted.priority)
            expect(shifted).toBe(same.find(({ sender }) => sender === shifted.sender))
            const rank = (item: Item) => item.priority + Math.floor((clock.monotonic() - item.since) / 10_000)
            // By whoever waits longest on it, no other priority ranks higher.
            const highest = Math.max(...model.map(rank))
            expect(Math.max(...same.map(rank))).toBe(highest)
            model = model.filter((other) => other !== shifted)
            const heads = same.filter(
              (item) => item !== shifted && item === same.find(({ sender }) => sender === item.sender),
            )
            for (const head of heads) passedBy.set(head, [...(passedBy.get(head) ?? []), shifted.sender])
          }
          passedBy = new Map([...passedBy].filter(([item]) => model.includes(item)))
          for (const senders of passedBy.values()) expect(new Set(senders).size).toBe(senders.length)
          expect(queue.size).toBe(model.length)
        }
      }),
      { numRuns: 300 },
    )
  })
})
