import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { encodePayload } from '../../src/payload/codec.ts'
import { encodeJson } from '../../src/payload/json.ts'
import { refusalOf, textOf } from './support.ts'

const circular: Record<string, unknown> = { list: [] }
;(circular.list as unknown[]).push({ back: circular })
const deep = (levels: number): unknown => (levels === 0 ? 1 : [deep(levels - 1)])
class Money {
  amount = 1
}

// F-36: what a handler may return by mistake.
const refused: [name: string, value: unknown, path: string, issue: RegExp][] = [
  ['undefined in a list', { rows: [1, undefined] }, '/rows/1', /send null/],
  ['a hole in a list', { rows: new Array(2) }, '/rows/0', /send null/],
  ['a bigint', { id: 1n }, '/id', /bigint.*string/],
  ['a symbol', { a: { b: Symbol('x') } }, '/a/b', /symbol/],
  ['a function', { run: () => 1 }, '/run', /function/],
  ['a method named toJSON', { toJSON: () => 'x' }, '/toJSON', /function/],
  ['NaN', [Number.NaN], '/0', /NaN/],
  ['infinity', { a: -Infinity }, '/a', /-Infinity/],
  ['1e400', [Number('1e400')], '/0', /Infinity/],
  ['an integer that is not exact', { id: 2 ** 53 }, '/id', /string/],
  ['a Date', { when: new Date(0) }, '/when', /Date.*toISOString/],
  ['a Map', { m: new Map() }, '/m', /Map.*fromEntries/],
  ['a Set', { s: new Set() }, '/s', /Set.*array/],
  ['an Error', { e: new TypeError('x') }, '/e', /TypeError/],
  ['bytes', { b: new Uint8Array(1) }, '/b', /Uint8Array.*base64/],
  ['a promise', { p: Promise.resolve() }, '/p', /Promise.*await/],
  ['an instance of a class', [{ price: new Money() }], '/0/price', /Money/],
  ['a boxed string', { s: new String('x') }, '/s', /String/],
  ['an object made to inherit', { o: Object.create({ a: 1 }) }, '/o', /instance/],
  ['a cycle', circular, '/list/0/back/list/0/back', /contains itself/],
  ['half a surrogate pair', { a: ['x\ud83d'] }, '/a/0', /surrogate/],
  ['half a surrogate pair in a key', { '\udc00': 1 }, '/\\u{dc00}', /surrogate/],
  ['a forbidden key', { a: JSON.parse('{"__proto__":1}') }, '/a/__proto__', /not allowed/],
  ['constructor as a key', { constructor: 1 }, '/constructor', /not allowed/],
  ['33 levels', deep(33), '/0'.repeat(32), /32 levels/],
  ['too many keys', Array.from({ length: 10_001 }, () => ({ k: 1 })), '/10000/k', /10000 keys/],
  [
    'a getter that throws',
    {
      a: {
        get b() {
          throw new Error('no')
        },
      },
    },
    '/a',
    /cannot be read/,
  ],
]

describe.each(['application/json', 'application/msgpack'] as const)(
  'encodePayload as %s refuses, and names the place',
  (type) => {
    it.each(refused)('%s', (_, value, path, issue) => {
      const error = refusalOf(() => encodePayload(type, value))
      expect(error.code).toBe('INVALID_PAYLOAD')
      expect(error.details.path).toSatisfy((found: string) => found.startsWith(path))
      expect(error.message).toMatch(issue)
    })

    it('what is larger than its limit, with size and limit', () => {
      expect(refusalOf(() => encodePayload(type, 'é'.repeat(60), { maxBytes: 100 }))).toMatchObject({
        code: 'PAYLOAD_TOO_LARGE',
        retryable: false,
        details: { limit: 100, size: expect.any(Number) },
      })
      expect(encodePayload(type, 'x'.repeat(90), { maxBytes: 100 }).length).toBeLessThanOrEqual(100)
    })

    it('a small graph that unfolds into a huge payload, early', () => {
      let bomb: unknown = [0]
      for (let i = 0; i < 30; i++) bomb = [bomb, bomb]
      expect(refusalOf(() => encodePayload(type, bomb, { maxBytes: 1 << 19 })).code).toBe('PAYLOAD_TOO_LARGE')
      expect(refusalOf(() => encodePayload(type, bomb)).message).toMatch(/1000000 values/)
      const text = 'x'.repeat(1 << 20)
      expect(refusalOf(() => encodePayload(type, new Array(5000).fill(text))).code).toBe('PAYLOAD_TOO_LARGE')
    })

    it('an unknown content type', () => {
      expect(refusalOf(() => encodePayload('text/plain' as never, 1)).code).toBe('INVALID_PAYLOAD')
    })
  },
)

describe('encodeJson', () => {
  it('writes undefined as null, and leaves undefined properties out', () => {
    expect(textOf(encodeJson(undefined))).toBe('null')
    expect(textOf(encodeJson({ a: undefined, b: null }))).toBe('{"b":null}')
  })

  it('writes -0 as 0, and numbers in their shortest spelling', () => {
    expect(textOf(encodeJson([-0, 0.00001, 1e21, 1e-7, 1.0, 5e-324]))).toBe('[0,0.00001,1e+21,1e-7,1,5e-324]')
  })

  it('writes non-ASCII text as UTF-8, and a text that spells an escape out as it is', () => {
    expect(textOf(encodeJson({ '€': '😀' }))).toBe('{"€":"😀"}')
    expect(textOf(encodeJson('\\ud83d'))).toBe('"\\\\ud83d"')
  })

  it('takes plain objects of another realm and without a prototype', () => {
    expect(textOf(encodeJson(runInNewContext('({ a: [1] })')))).toBe('{"a":[1]}')
    expect(textOf(encodeJson(Object.assign(Object.create(null), { a: 1 })))).toBe('{"a":1}')
  })

  it('takes one object that stands in two places', () => {
    const shared = { x: 1 }
    expect(textOf(encodeJson([shared, shared]))).toBe('[{"x":1},{"x":1}]')
  })
})
