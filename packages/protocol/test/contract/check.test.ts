import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import { checkAgainst } from '../../src/contract/check.ts'
import { HermesError } from '../../src/errors/hermes-error.ts'
import { refusalOf } from '../payload/support.ts'

const schema = z.object({ rows: z.array(z.object({ id: z.int(), 'a/b': z.string().optional() })) })

describe('checkAgainst', () => {
  it('gives the parsed value at once', () => {
    const parsed = checkAgainst(
      z.object({ n: z.string().transform(Number), d: z.number().default(7) }),
      { n: '5' },
      'input',
    )
    expect(parsed).toEqual({ n: 5, d: 7 })
  })

  it('gives a promise where the schema needs one', async () => {
    const slow = z.string().refine(async (text) => text !== 'taken', 'is taken')
    const parsed = checkAgainst(slow, 'free', 'input')
    expect(parsed).toBeInstanceOf(Promise)
    expect(await parsed).toBe('free')
    await expect(checkAgainst(slow, 'taken', 'input')).rejects.toMatchObject({
      code: 'VALIDATION_ERROR',
      message: 'input: is taken',
      details: { path: '', issue: 'is taken' },
    })
  })

  it('names the field by a JSON Pointer', () => {
    const error = refusalOf(() => checkAgainst(schema, { rows: [{ id: 1 }, { id: 'x', 'a/b': 2 }] }, 'input'))
    expect(error).toMatchObject({
      code: 'VALIDATION_ERROR',
      details: {
        path: '/rows/1/id',
        issue: expect.stringMatching(/expected (number|int), received string \(and 1 more\)/),
      },
    })
    expect(error.message).toMatch(/^input\/rows\/1\/id: /)
    expect(refusalOf(() => checkAgainst(schema, { rows: [{ id: 1, 'a/b': 2 }] }, 'input')).details.path).toBe(
      '/rows/0/a~1b',
    )
  })

  it('takes another code for what a handler returned', () => {
    expect(refusalOf(() => checkAgainst(schema, {}, 'output', { code: 'INVALID_RESULT' })).code).toBe('INVALID_RESULT')
  })

  it('turns a schema that throws, or rejects, into a refusal with its cause', async () => {
    const cause = new Error('boom')
    const throws = (): never => {
      throw cause
    }
    const standard = { version: 1, vendor: 'other', validate: throws } as const
    expect(refusalOf(() => checkAgainst({ '~standard': standard }, 'x', 'input'))).toMatchObject({
      code: 'VALIDATION_ERROR',
      cause,
    })
    await expect(checkAgainst(z.string().transform(throws), 'x', 'input')).rejects.toMatchObject({
      code: 'VALIDATION_ERROR',
      cause,
    })
  })

  it('keeps a long text of a schema library short', () => {
    const error = refusalOf(() =>
      checkAgainst(
        z.string().refine(() => false, 'x'.repeat(5_000)),
        'y',
        'input',
      ),
    )
    expect(error).toBeInstanceOf(HermesError)
    expect(error.message.length).toBeLessThan(400)
  })
})
