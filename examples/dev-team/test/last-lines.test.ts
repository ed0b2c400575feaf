import { describe, expect, it } from 'vitest'
import { createLastLines } from '../src/cli/last-lines.ts'

const COMMIT = 'a'.repeat(40)
const output = (at: number, text: string, by = 'tester-a') =>
  ({ at, agent: 'pm', type: 'run.output', by, commit: COMMIT, text }) as const

describe('the output of long runs', () => {
  it('is told by its last whole line, from time to time', () => {
    const lines = createLastLines()
    expect(lines.describe({ at: 1, agent: 'tester-a', type: 'run.started', commit: COMMIT, patched: false })).toBe(
      undefined,
    )
    expect(lines.describe(output(3, 'ok 1\nok 2\n'))).toBe(undefined)
    expect(lines.describe(output(5, 'ok 3\nprüft \u001b[31m日本'))).toBe('tester-a, aaaaaaa for 4 s: ok 3')
    expect(lines.describe(output(6, '語\u001b[39m\nok 5\n'))).toBe(undefined)
    expect(lines.describe(output(11, 'x\nprüft 日本'))).toBe('tester-a, aaaaaaa for 10 s: x')
    expect(lines.describe(output(16.4, '語\u202e\n\n'))).toBe('tester-a, aaaaaaa for 15 s: prüft 日本語')
  })

  it('begins anew with another run', () => {
    const lines = createLastLines()
    lines.describe(output(1, 'a\n'))
    lines.describe({ at: 2, agent: 'tester-a', type: 'run.ended', commit: COMMIT, patched: false, passed: true, ms: 1 })
    expect(lines.describe(output(9, 'b\n'))).toBe(undefined)
    expect(lines.describe(output(13, 'c\n'))).toBe('tester-a, aaaaaaa for 4 s: c')
  })
})
