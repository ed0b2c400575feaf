import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createTimerHeap, type HeapEntry } from '../../src/clock/timer-heap.ts'

const command = fc.oneof(
  fc.record({ do: fc.constant('push' as const), at: fc.integer({ min: 0, max: 20 }) }),
  fc.record({ do: fc.constant('pop' as const) }),
  fc.record({ do: fc.constant('remove' as const), which: fc.nat() }),
)

it('gives what a sorted list would give, under any mix of pushing, taking and removing', () => {
  fc.assert(
    fc.property(fc.array(command, { maxLength: 200 }), (commands) => {
      const heap = createTimerHeap<HeapEntry>()
      const model: HeapEntry[] = []
      const everything: HeapEntry[] = []
      const sort = () => model.sort((a, b) => a.at - b.at || a.order - b.order)
      for (const one of commands) {
        if (one.do === 'push') {
          const entry = { at: one.at, order: everything.length, index: -1 }
          everything.push(entry)
          model.push(entry)
          heap.push(entry)
        } else if (one.do === 'pop') {
          expect(heap.pop()).toBe(sort().shift())
        } else if (everything.length > 0) {
          const entry = everything[one.which % everything.length] as HeapEntry
          const at = model.indexOf(entry)
          expect(heap.remove(entry)).toBe(at >= 0)
          if (at >= 0) model.splice(at, 1)
        }
        expect(heap.size).toBe(model.length)
        expect(heap.peek()).toBe(sort()[0])
      }
    }),
    { numRuns: 300 },
  )
})
