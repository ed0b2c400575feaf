import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { alignLines } from '../src/repair/align.ts'

describe('aligning removed and added lines', () => {
  it('has every line of both lists once, in order', () => {
    const lines = fc.array(fc.constantFrom('alpha beta', 'alpha gamma', 'x', '', '  alpha beta', 'return 1'), {
      maxLength: 15,
    })
    fc.assert(
      fc.property(lines, lines, (removed, added) => {
        const steps = alignLines(removed, added)
        expect(steps.flatMap((step) => step.removed ?? [])).toEqual(removed.map((_, i) => i))
        expect(steps.flatMap((step) => step.added ?? [])).toEqual(added.map((_, i) => i))
      }),
      { numRuns: 500 },
    )
  })

  it('pairs versions of a line across lines that have none', () => {
    expect(alignLines(['import a', 'log(1)', 'return x > 1'], ['return x >= 1'])).toEqual([
      { removed: 0, added: undefined },
      { removed: 1, added: undefined },
      { removed: 2, added: 0 },
    ])
  })

  it('pairs lines in turn where none is like another', () => {
    expect(alignLines(['a', 'b'], ['1', '2', '3'])).toEqual([
      { removed: 0, added: 0 },
      { removed: 1, added: 1 },
      { removed: undefined, added: 2 },
    ])
  })

  it('stays fast for a file that was rewritten', () => {
    const many = (prefix: string): string[] => Array.from({ length: 5_000 }, (_, i) => `${prefix} ${i}`)
    expect(alignLines(many('old'), many('new'))).toHaveLength(5_000)
  })
})
