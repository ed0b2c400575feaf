import fc from 'fast-check'
import { type HermesError, isHermesError } from '../../src/errors/hermes-error.ts'

export const bytesOf = (text: string) => new TextEncoder().encode(text)
export const textOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes)

/** The HermesError that a piece of code throws; fails when it throws none. */
export function refusalOf(run: () => unknown): HermesError {
  try {
    run()
  } catch (error) {
    if (isHermesError(error)) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

const forbidden = new Set(['__proto__', 'constructor', 'prototype'])
const key = fc.string({ unit: 'grapheme', maxLength: 12 }).filter((text) => !forbidden.has(text))
const number = fc
  .oneof(fc.maxSafeInteger(), fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }))
  .filter((value) => !Number.isInteger(value) || Number.isSafeInteger(value) || Math.abs(value) >= 1e21)

/** Data that a payload may carry, with properties that are undefined. */
export const data: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 5, depthSize: 'medium' },
    fc.constant(null),
    fc.boolean(),
    number,
    fc.string({ unit: 'binary' }),
    fc.string({ unit: 'grapheme' }),
    fc.array(tie('value'), { maxLength: 6 }),
    fc.dictionary(
      key,
      fc.oneof({ weight: 9, arbitrary: tie('value') }, { weight: 1, arbitrary: fc.constant(undefined) }),
      {
        maxKeys: 6,
        noNullPrototype: true,
      },
    ),
  ),
})).value

/** What arrives of data: without undefined properties, with 0 for -0, an unshared copy. */
export function normalised(value: unknown): unknown {
  const copy: unknown = structuredClone(value)
  const strip = (node: unknown): unknown => {
    if (Object.is(node, -0)) return 0
    if (Array.isArray(node)) return node.map(strip)
    if (typeof node !== 'object' || node === null) return node
    return Object.fromEntries(
      Object.entries(node)
        .filter(([, item]) => item !== undefined)
        .map(([name, item]) => [name, strip(item)]),
    )
  }
  return strip(copy)
}
