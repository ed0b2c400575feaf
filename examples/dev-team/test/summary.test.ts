import { describe, expect, it } from 'vitest'
import { printable } from '../src/process/printable.ts'
import { countTests, summarize } from '../src/process/summary.ts'

describe('reading test output', () => {
  it.each([
    ['node:test as TAP', '# tests 12\n# suites 0\n# pass 11\n# fail 1\n', { passed: 11, total: 12 }],
    ['node:test for people', 'ℹ tests 3\nℹ pass 3\n', { passed: 3, total: 3 }],
    [
      'vitest',
      ' Test Files  1 failed | 2 passed (3)\n      Tests  1 failed | 11 passed (12)\n',
      { passed: 11, total: 12 },
    ],
    ['vitest in colours', '\u001b[2m Tests \u001b[22m \u001b[32m4 passed\u001b[39m (4)\n', { passed: 4, total: 4 }],
    ['jest', 'Tests:       2 failed, 10 passed, 12 total\nSnapshots:   0 total\n', { passed: 10, total: 12 }],
    ['mocha', '\n  7 passing (12ms)\n  1 failing\n', { passed: 7, total: 8 }],
    ['pytest', '==== 1 failed, 9 passed in 0.12s ====\n', { passed: 9, total: 10 }],
    [
      'cargo',
      'test result: ok. 3 passed; 0 failed; 0 ignored\ntest result: FAILED. 1 passed; 2 failed; 0 ignored\n',
      { passed: 4, total: 6 },
    ],
    ['anything else', 'all fine\n', undefined],
  ])('counts tests of %s', (_, output, count) => {
    expect(countTests(output)).toEqual(count)
  })

  it('names the first failing test', () => {
    expect(summarize('ok 1 - a\nnot ok 2 - adds up\nnot ok 3 - b\n# tests 3\n# pass 1\n')).toBe(
      '1/3 tests, fails: adds up',
    )
  })

  it('gives the last line of what it cannot read', () => {
    expect(summarize('compiling\nerror: 型が合いません\n\n')).toBe('error: 型が合いません')
    expect(summarize('')).toBe('no output')
  })
})

describe('text for the terminal', () => {
  it('drops control and direction-changing characters, keeps every language', () => {
    expect(printable('\u001b[31mred\u001b[0m\u0007 \u202eevil\u202c 日本語 é\r\nnext')).toBe('red evil 日本語 é next')
  })

  it('cuts by characters, not in the middle of one', () => {
    expect(printable('😀😀😀😀', 3)).toBe('😀😀…')
  })
})
