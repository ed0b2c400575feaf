import { describe, expect, expectTypeOf, it } from 'vitest'
import * as z from 'zod'
import {
  type AnswerOf,
  type Capability,
  capability,
  checkAgainst,
  type ErrorDataOf,
  type ErrorReturnOf,
  type ErrorsOf,
  type HandlerAnswerOf,
  type HandlerInputOf,
  type InputOf,
  isError,
  type OutputOf,
  type PartialOf,
  type QuestionOf,
  type ReturnOf,
  type YieldOf,
} from '../../src/contract/index.ts'
import { HermesError } from '../../src/errors/hermes-error.ts'

const instant = z.codec(z.iso.datetime(), z.date(), { decode: (s) => new Date(s), encode: (d) => d.toISOString() })

const review = capability('code_review', {
  description: 'Reviews one TypeScript file.',
  input: z.object({ source: z.string(), limit: z.number().default(10), since: z.string().transform((s) => s.length) }),
  output: z.object({ findings: z.array(z.string()), at: instant }),
  errors: { TOO_LONG: z.object({ max_lines: z.number() }), LATE: z.object({ at: instant }) },
  effects: 'none',
  labels: { language: ['ts'] },
})

const plain = capability('plain', { description: 'Plain.', input: z.string(), output: z.null() })

const full = capability('full', {
  description: 'Full.',
  input: z.string(),
  output: z.null(),
  partial: z.object({ plan: instant }),
  yields: z.string().transform(Number),
  asks: { question: z.object({ plan: z.string() }), answer: z.object({ approved: z.boolean().default(true) }) },
})

describe('types of a contract', () => {
  it('tell caller and handler apart', () => {
    expectTypeOf<InputOf<typeof review>>().toEqualTypeOf<{
      source: string
      limit?: number | undefined
      since: string
    }>()
    expectTypeOf<HandlerInputOf<typeof review>>().toEqualTypeOf<{ source: string; limit: number; since: number }>()
    expectTypeOf<ReturnOf<typeof review>>().toEqualTypeOf<{ findings: string[]; at: string }>()
    expectTypeOf<OutputOf<typeof review>>().toEqualTypeOf<{ findings: string[]; at: Date }>()
  })

  it('know the declared errors and their data', () => {
    expectTypeOf<ErrorsOf<typeof review>>().toEqualTypeOf<'TOO_LONG' | 'LATE'>()
    expectTypeOf<ErrorsOf<typeof plain>>().toEqualTypeOf<never>()
    expectTypeOf<ErrorDataOf<typeof review, 'TOO_LONG'>>().toEqualTypeOf<{ max_lines: number }>()
    expectTypeOf<ErrorDataOf<typeof review, 'LATE'>>().toEqualTypeOf<{ at: Date }>()
    expectTypeOf<ErrorReturnOf<typeof review, 'LATE'>>().toEqualTypeOf<{ at: string }>()
  })

  it('know partial results, pieces, questions and answers', () => {
    expectTypeOf<PartialOf<typeof full>>().toEqualTypeOf<{ plan: Date }>()
    expectTypeOf<YieldOf<typeof full>>().toEqualTypeOf<number>()
    expectTypeOf<QuestionOf<typeof full>>().toEqualTypeOf<{ plan: string }>()
    expectTypeOf<AnswerOf<typeof full>>().toEqualTypeOf<{ approved?: boolean | undefined }>()
    expectTypeOf<HandlerAnswerOf<typeof full>>().toEqualTypeOf<{ approved: boolean }>()
    expectTypeOf<PartialOf<typeof plain>>().toEqualTypeOf<unknown>()
    expectTypeOf<YieldOf<typeof plain>>().toEqualTypeOf<unknown>()
  })

  it('let every contract stand where any is wanted', () => {
    const use = (contract: Capability): string => contract.name
    expectTypeOf(review).toExtend<Capability>()
    expectTypeOf(plain).toExtend<Capability>()
    expectTypeOf(full).toExtend<Capability>()
    expect([review, plain, full].map(use)).toEqual(['code_review', 'plain', 'full'])
    expectTypeOf<InputOf<Capability>>().toEqualTypeOf<unknown>()
    expectTypeOf<ErrorsOf<Capability>>().toEqualTypeOf<string>()
  })

  it('can be given on by a generic function, as a peer does', () => {
    const call = <C extends Capability>(contract: C, input: InputOf<C>): OutputOf<C> => [contract, input] as OutputOf<C>
    expectTypeOf(call(plain, 'x')).toEqualTypeOf<null>()
    expectTypeOf(call(review, { source: '', since: '' })).toEqualTypeOf<{ findings: string[]; at: Date }>()
    // @ts-expect-error source is missing
    call(review, { since: '' })
    // @ts-expect-error not a declared error
    type _Unknown = ErrorDataOf<typeof review, 'MISSING'>
  })

  it('refuse what is no schema', () => {
    // @ts-expect-error a plain JSON Schema is not a Standard Schema
    expect(() => capability('x', { description: 'X.', input: { type: 'object' }, output: z.null() })).toThrow()
    // @ts-expect-error the output is missing
    expect(() => capability('x', { description: 'X.', input: z.null() })).toThrow()
  })

  it('type the checked value', async () => {
    const checked = checkAgainst(z.string().transform(Number), '5', 'input')
    expectTypeOf(checked).toEqualTypeOf<number | Promise<number>>()
    expect(await checked).toBe(5)
  })
})

describe('isError', () => {
  const thrown: unknown = new HermesError('HANDLER_ERROR', { declared: { name: 'TOO_LONG', data: { max_lines: 5 } } })

  it('knows a declared error and types its data', () => {
    if (!isError(thrown, review, 'TOO_LONG')) throw new Error('not recognised')
    expectTypeOf(thrown.data).toEqualTypeOf<{ max_lines: number }>()
    expectTypeOf(thrown).toExtend<HermesError>()
    expect(thrown.data.max_lines).toBe(5)
  })

  it('knows nothing else', () => {
    expect(isError(thrown, review, 'LATE')).toBe(false)
    expect(isError(thrown, plain as Capability, 'TOO_LONG')).toBe(false)
    expect(isError(new HermesError('BUSY'), review, 'TOO_LONG')).toBe(false)
    expect(isError(new Error('x'), review, 'TOO_LONG')).toBe(false)
    expect(isError(undefined, review, 'TOO_LONG')).toBe(false)
    // @ts-expect-error not a declared name
    expect(isError(thrown, review, 'OTHER')).toBe(false)
  })
})
