import { encode } from '@msgpack/msgpack'
import { describe, expect, it } from 'vitest'
import { decodePayload, encodePayload } from '../../src/payload/codec.ts'
import { decodeMsgpack, encodeMsgpack } from '../../src/payload/msgpack.ts'
import { refusalOf } from './support.ts'

const hex = (text: string) => new Uint8Array(Buffer.from(text.replaceAll(' ', ''), 'hex'))

describe('decodeMsgpack refuses, and names the place', () => {
  const rows: [name: string, bytes: Uint8Array, path: string, issue: RegExp][] = [
    ['nothing', hex(''), '', /end within/],
    ['bytes after the value', hex('c0 c0'), '', /after the value/],
    ['a key that is a number', hex('81 01 c0'), '', /key is not a string/],
    ['a duplicate key', hex('82 a1 61 c0 a1 61 c0'), '/a', /twice/],
    ['a duplicate key of another length of head', hex('82 a1 61 c0 d9 01 61 c0'), '/a', /twice/],
    ['__proto__', encode({ a: { ['__proto__']: 1 } }), '/a/__proto__', /not allowed/],
    ['constructor', encode([{ constructor: 1 }]), '/0/constructor', /not allowed/],
    ['bin', encode({ b: new Uint8Array(2) }), '/b', /binary.*base64/],
    ['ext: a timestamp', encode([new Date(0)]), '/0', /extension/],
    ['a fixext', hex('91 d4 01 00'), '/0', /extension/],
    ['0xc1', hex('91 c1'), '/0', /never uses/],
    ['NaN', encode({ n: [Number.NaN] }), '/n/0', /NaN/],
    ['infinity as float 32', hex('ca 7f 80 00 00'), '', /Infinity/],
    ['2^53 as uint 64', hex('81 a2 69 64 cf 00 20 00 00 00 00 00 00'), '/id', /rounded.*string/],
    ['−2^53 as int 64', hex('d3 ff e0 00 00 00 00 00 00'), '', /rounded/],
    ['text that is not UTF-8', hex('91 a2 c3 28'), '/0', /UTF-8/],
    ['an encoded surrogate', hex('91 a3 ed a0 80'), '/0', /UTF-8/],
    ['a cut string', hex('91 a5 61'), '/0', /end within/],
    ['a list that claims four billion items', hex('dd ff ff ff ff'), '', /end within/],
    ['a map that claims four billion keys', hex('df ff ff ff ff'), '', /end within/],
    ['a string that claims four gigabytes', hex('db ff ff ff ff'), '', /end within/],
    ['33 levels', new Uint8Array([...new Array(32).fill(0x91), 0x90]), '/0'.repeat(32), /32 levels/],
    ['too many keys', encode(Array.from({ length: 10_001 }, () => ({ k: 1 }))), '/10000', /10000 keys/],
    ['too many values', encode(new Array(1_000_000).fill(0)), '/999999', /1000000 values/],
  ]
  it.each(rows)('%s', (_, bytes, path, issue) => {
    const error = refusalOf(() => decodeMsgpack(bytes))
    expect(error.code).toBe('INVALID_PAYLOAD')
    expect(error.details).toEqual({ path, issue: expect.stringMatching(issue) })
  })
})

describe('decodeMsgpack accepts', () => {
  it('every width of integer within the safe range', () => {
    for (const value of [0, 127, 128, 255, 256, 65_535, 65_536, 2 ** 32 - 1, 2 ** 32, Number.MAX_SAFE_INTEGER]) {
      expect(decodeMsgpack(encodeMsgpack(value))).toBe(value)
      expect(decodeMsgpack(encodeMsgpack(-value))).toBe(value === 0 ? 0 : -value)
    }
  })

  it('a byte order mark at the start of a long text, which is part of it', () => {
    const text = `\ufeff${'x'.repeat(300)}`
    expect(decodeMsgpack(encodeMsgpack(text))).toBe(text)
  })

  it('-0 as 0', () => {
    expect(decodeMsgpack(hex('cb 80 00 00 00 00 00 00 00'))).toBe(0)
  })
})

describe('the two forms', () => {
  it('carry the same data', () => {
    const value = { list: [1, -1.5, 'é😀', null, true, {}], nested: { none: undefined } }
    const [json, msgpack] = (['application/json', 'application/msgpack'] as const).map((type) =>
      decodePayload(type, encodePayload(type, value)),
    )
    expect(msgpack).toStrictEqual(json)
  })
})
