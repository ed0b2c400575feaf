import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isHermesError } from '../../src/errors/hermes-error.ts'
import { decodeJson, encodeJson } from '../../src/payload/json.ts'
import { decodeMsgpack, encodeMsgpack } from '../../src/payload/msgpack.ts'
import { referenceJson, referenceMsgpack, verdict } from './reference.ts'
import { bytesOf, data, normalised } from './support.ts'

const RUNS = { numRuns: 1000 }
const MUTANTS = { numRuns: 5000 }

function decided(decode: (bytes: Uint8Array) => unknown, bytes: Uint8Array): { value: unknown } | 'refused' {
  try {
    return { value: decode(bytes) }
  } catch (error) {
    if (isHermesError(error) && error.code === 'INVALID_PAYLOAD') return 'refused'
    throw error
  }
}

const mutation = fc.record({
  at: fc.nat(),
  kind: fc.constantFrom('flip', 'cut', 'double', 'insert'),
  length: fc.integer({ min: 1, max: 12 }),
  byte: fc.oneof(fc.constantFrom(...bytesOf('{}[]",:\\-0.eEu9 ')), fc.nat(255)),
})

function mutate(
  bytes: Uint8Array,
  { at, kind, length, byte }: typeof mutation extends fc.Arbitrary<infer T> ? T : never,
): Uint8Array {
  const all = [...bytes]
  const place = at % (all.length + 1)
  if (kind === 'flip') all[place] = byte
  if (kind === 'cut') all.splice(place, length)
  if (kind === 'double') all.splice(place, 0, ...all.slice(place, place + length))
  if (kind === 'insert') all.splice(place, 0, byte)
  return Uint8Array.from(all)
}

const forms = [
  { name: 'JSON', encode: encodeJson, decode: decodeJson, reference: referenceJson },
  { name: 'MessagePack', encode: encodeMsgpack, decode: decodeMsgpack, reference: referenceMsgpack },
]

describe.each(forms)('$name', ({ encode, decode, reference }) => {
  it('gives back the data that it was given', () => {
    fc.assert(
      fc.property(data, (value) => {
        expect(decode(encode(value))).toStrictEqual(normalised(value))
      }),
      RUNS,
    )
  })

  it('is read alike by the reference', () => {
    fc.assert(
      fc.property(data, (value) => {
        const bytes = encode(value)
        expect(verdict(reference, bytes)).toStrictEqual({ value: decode(bytes) })
      }),
      RUNS,
    )
  })

  it('is decided as the reference decides, for damaged bytes', () => {
    let refused = 0
    fc.assert(
      fc.property(data, fc.array(mutation, { minLength: 1, maxLength: 3 }), (value, mutations) => {
        const bytes = mutations.reduce(mutate, encode(value))
        const decision = decided(decode, bytes)
        if (decision === 'refused') refused++
        expect(decision).toStrictEqual(verdict(reference, bytes))
      }),
      MUTANTS,
    )
    // Else the mutations would show nothing.
    expect(refused).toBeGreaterThan(MUTANTS.numRuns / 4)
    expect(refused).toBeLessThan(MUTANTS.numRuns)
  })
})

describe('JSON text', () => {
  const token = fc.constantFrom(
    ...[
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"a"',
      '"b"',
      '"__proto__"',
      '"\\ud83d"',
      '"\\ude00"',
      '"\\ud83d\\ude00"',
      '1',
      '-0',
      '01',
      '1.5',
    ],
    ...[
      '1e5',
      '1e999',
      '9007199254740993',
      '9007199254740991',
      'true',
      'nul',
      'null',
      ' ',
      '\n',
      '\\',
      '"',
      '\u00e9',
      '.',
      '-',
      'e',
    ],
  )
  it('is decided as the reference decides, for any sequence of tokens', () => {
    let accepted = 0
    fc.assert(
      fc.property(fc.array(token, { maxLength: 9 }), (tokens) => {
        const bytes = bytesOf(tokens.join(''))
        const decision = decided(decodeJson, bytes)
        if (decision !== 'refused') accepted++
        expect(decision).toStrictEqual(verdict(referenceJson, bytes))
      }),
      { numRuns: 20_000 },
    )
    expect(accepted).toBeGreaterThan(100)
  })

  it('is decided as the reference decides, for any spelling of a string', () => {
    const piece = fc.constantFrom(
      'x',
      '\\n',
      '\\"',
      '\\\\',
      '\\u0041',
      '\\ud83d',
      '\\ude00',
      '\\u',
      '\\q',
      'é',
      '😀',
      '\n',
      '"',
      'x'.repeat(60),
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
        const bytes = bytesOf(`["${pieces.join('')}"]`)
        expect(decided(decodeJson, bytes)).toStrictEqual(verdict(referenceJson, bytes))
      }),
      MUTANTS,
    )
  })

  it('the comparison catches a decoder that only parses', () => {
    const lax = (bytes: Uint8Array): unknown => JSON.parse(new TextDecoder().decode(bytes))
    const agrees = fc.property(fc.array(token, { maxLength: 9 }), (tokens) => {
      const judged = verdict(referenceJson, bytesOf(tokens.join('')))
      if (judged === 'refused') expect(() => lax(bytesOf(tokens.join('')))).toThrow()
    })
    expect(fc.check(agrees, { numRuns: 20_000 }).failed).toBe(true)
  })
})
