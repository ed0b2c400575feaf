import { describe, expect, it } from 'vitest'
import { decodeJson } from '../../src/payload/json.ts'
import { bytesOf, refusalOf } from './support.ts'

const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`
const keyed = (count: number) => `{${Array.from({ length: count }, (_, i) => `"k${i}":0`).join()}}`

describe('decodeJson refuses, and names the place', () => {
  const rows: [name: string, text: string | Uint8Array, path: string, issue: RegExp][] = [
    ['nothing', '', '', /JSON value/],
    ['a byte order mark', '\ufeff{}', '', /JSON value/],
    ['text after the value', '{} {}', '', /goes on/],
    ['a missing value', '{"a":[1,]}', '/a/1', /JSON value/],
    ['an open object', '{"a":{"b":1', '/a/b', /closing bracket/],
    ['an unquoted key', '{"a":{b:1}}', '/a', /double quotes/],
    ['a missing colon', '{"a" 1}', '/a', /colon/],
    ['a trailing comma', '{"a":1,}', '', /double quotes/],
    ['a comment', '[1, // one\n2]', '/1', /JSON value/],
    ['a duplicate key', '{"a":[{"x":1,"y":2,"x":3}]}', '/a/0/x', /twice/],
    ['a duplicate key by an escape', '{"x":1,"\\u0078":2}', '/x', /twice/],
    ['__proto__', '{"a":{"__proto__":{}}}', '/a/__proto__', /not allowed/],
    ['__proto__ by an escape', '{"\\u005f_proto__":1}', '/__proto__', /not allowed/],
    ['constructor', '[{"constructor":1}]', '/0/constructor', /not allowed/],
    ['prototype', '{"prototype":1}', '/prototype', /not allowed/],
    ['half a surrogate pair by an escape', '{"a":"\\ud83d"}', '/a', /surrogate/],
    ['the second half alone', '["\\ude00"]', '/0', /surrogate/],
    ['two first halves', '["\\ud83d\\ud83d"]', '/0', /surrogate/],
    ['a first half before other text', '["\\ud83dx"]', '/0', /surrogate/],
    ['half a surrogate pair in a key', '{"b":{"\\udc00":1}}', '/b', /surrogate/],
    ['an encoded surrogate', new Uint8Array([0x22, 0xed, 0xa0, 0x80, 0x22]), '', /UTF-8/],
    ['an overlong form', new Uint8Array([0x22, 0xc0, 0xaf, 0x22]), '', /UTF-8/],
    ['a cut character', new Uint8Array([0x22, 0xe2, 0x82, 0x22]), '', /UTF-8/],
    ['a raw control character', '["a\nb"]', '/0', /control/],
    ['a raw control character far into a string', `{"a":["${'x'.repeat(500)}\n"]}`, '/a/0', /control/],
    ['an unknown escape', '["\\x41"]', '/0', /escape/],
    ['a short escape', '["\\u12"]', '/0', /escape/],
    ['an endless string', `{"a":"${'x'.repeat(500)}`, '/a', /no end/],
    ['2^53', '{"id":9007199254740992}', '/id', /rounded.*string/],
    ['−2^53', '[-9007199254740992]', '/0', /rounded/],
    ['an integer of 400 digits', `[${'9'.repeat(400)}]`, '/0', /rounded/],
    ['a decimal beyond a double', '{"a":{"b":1e400}}', '/a/b', /too large/],
    ['a negative one', '[-1e400]', '/0', /too large/],
    ['a leading zero', '[07]', '/0', /spelled/],
    ['a plus sign', '[+1]', '/0', /JSON value/],
    ['a bare dot', '[1.]', '/0', /spelled/],
    ['a bare exponent', '[1e]', '/0', /spelled/],
    ['a bare minus', '[-]', '/0', /spelled/],
    ['NaN', '[NaN]', '/0', /JSON value/],
    ['33 levels', nested(33), `${'/0'.repeat(32)}`, /32 levels/],
    ['10,001 keys', keyed(10_001), '/k10000', /10000 keys/],
    ['10,001 keys of as many objects', `[${'{"a":1},'.repeat(10_000)}{"a":1}]`, '/10000/a', /10000 keys/],
    ['1,000,001 values', `[${'[],'.repeat(999_999)}[]]`, '/999999', /1000000 values/],
  ]
  it.each(rows)('%s', (_, text, path, issue) => {
    const error = refusalOf(() => decodeJson(typeof text === 'string' ? bytesOf(text) : text))
    expect(error.code).toBe('INVALID_PAYLOAD')
    expect(error.details).toEqual({ path, issue: expect.stringMatching(issue) })
    expect(error.message).toContain(`payload${path}: `)
    expect(error.message).toMatch(issue)
  })

  it('answers for a million open brackets without a deep call stack', () => {
    expect(refusalOf(() => decodeJson(bytesOf('['.repeat(1e6)))).message).toMatch(/32 levels/)
  })

  it('does not search a long string to its end for each of its escapes', () => {
    const text = `["${`${'x'.repeat(60)}\\n`.repeat(20_000)}"]`
    const start = process.cpuUsage()
    decodeJson(bytesOf(text))
    // Searching again for each escape takes several seconds; time of this process only.
    expect(process.cpuUsage(start).user / 1000).toBeLessThan(1000)
  })

  it('shows keys of strangers escaped and shortened', () => {
    const error = refusalOf(() => decodeJson(bytesOf(`{"a\\n\\u202eb/~":{"${'k'.repeat(500)}":[1e999]}}`)))
    expect(error.details.path).toBe(`/a\\u{a}\\u{202e}b~1~0/${'k'.repeat(64)}…/0`)
    expect(error.message).not.toMatch(/\n/)
  })
})

describe('decodeJson accepts', () => {
  const rows: [name: string, text: string, value: unknown][] = [
    ['an emoji by escapes', '"\\ud83d\\ude00"', '😀'],
    ['any language', '{"ключ":"値","é":"e\u0301"}', { ключ: '値', é: 'e\u0301' }],
    ['NUL by an escape', '"\\u0000"', '\0'],
    ['a text that spells an escape out', '"\\\\ud83d"', '\\ud83d'],
    ['white space', ' \t\r\n[ 1 , { } , [ ] ] ', [1, {}, []]],
    ['2^53 − 1', '[9007199254740991,-9007199254740991]', [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]],
    ['several spellings of one number', '[1.0,1e0,10E-1,0.1e+1]', [1, 1, 1, 1]],
    [
      'small and large decimals',
      '[0.00001,1e-7,5e-324,1e21,6.02214076e23]',
      [0.00001, 1e-7, 5e-324, 1e21, 6.02214076e23],
    ],
    ['a string as a number', '"12345678901234567890"', '12345678901234567890'],
    ['32 levels', nested(32), JSON.parse(nested(32))],
    ['10,000 keys', keyed(10_000), JSON.parse(keyed(10_000))],
    [
      'names of the object prototype that are harmless',
      '{"toString":1,"hasOwnProperty":2}',
      { toString: 1, hasOwnProperty: 2 },
    ],
    [
      'a long string with escapes',
      JSON.stringify('line of text\n"quoted" \\ '.repeat(200)),
      'line of text\n"quoted" \\ '.repeat(200),
    ],
    [
      'an escape right behind a long run',
      `"${'x'.repeat(48)}\\"${'y'.repeat(100)}"`,
      `${'x'.repeat(48)}"${'y'.repeat(100)}`,
    ],
  ]
  it.each(rows)('%s', (_, text, value) => {
    expect(decodeJson(bytesOf(text))).toEqual(value)
  })

  it('-0 as 0, wherever it stands', () => {
    expect(decodeJson(bytesOf('-0'))).toBe(0)
    expect(decodeJson(bytesOf('[-0,{"a":-0.0,"b":[-0e5]}]'))).toStrictEqual([0, { a: 0, b: [0] }])
  })

  it('null and absence as two things', () => {
    expect(decodeJson(bytesOf('{"a":null}'))).toStrictEqual({ a: null })
    expect(decodeJson(bytesOf('{}'))).not.toHaveProperty('a')
  })

  it('a view into a larger buffer', () => {
    const whole = bytesOf('xx[1]yy')
    expect(decodeJson(whole.subarray(2, 5))).toEqual([1])
  })
})
