import { describe, expect, it } from 'vitest'
import { stricter } from '../../src/calls/effects.ts'

describe('effects', () => {
  it('are once where neither side says', () => {
    expect(stricter(undefined, undefined)).toBe('once')
  })

  it.each([
    ['none', 'none', 'none'],
    ['none', 'idempotent', 'idempotent'],
    ['idempotent', 'none', 'idempotent'],
    ['once', 'none', 'once'],
    ['none', 'once', 'once'],
    ['idempotent', 'once', 'once'],
    [undefined, 'none', 'none'],
    ['idempotent', undefined, 'idempotent'],
  ] as const)(
    'of a caller that says %s and a provider that says %s are %s: the stricter counts',
    (ours, theirs, expected) => {
      expect(stricter(ours, theirs)).toBe(expected)
    },
  )
})
