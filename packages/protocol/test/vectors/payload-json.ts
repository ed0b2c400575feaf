import { decodeJson, encodeJson, toHex } from '../../src/index.ts'
import { hexOf, type Pieces, type Vector } from './scene.ts'

/** Data, and the bytes that an encoder writes for it. */
export const DATA: readonly (readonly [string, unknown])[] = [
  ['null', null],
  ['true', true],
  ['a text', 'text'],
  ['an empty text', ''],
  ['empty containers', { list: [], object: {}, text: '' }],
  [
    'keys whose order differs by code point and by UTF-16 unit, in neither order',
    { '\u20ac': 1, '\ud83d\ude00': 2, '\ufb33': 3 },
  ],
  ['the same keys by code point', { '\u20ac': 1, '\ufb33': 3, '\ud83d\ude00': 2 }],
  ['Chinese', { 任务: '找出破坏测试的提交', 状态: '完成' }],
  ['emoji, with a joiner, a skin tone and a flag', { '👩‍💻': ['👍🏽', '🇨🇳', '🏳️‍🌈'] }],
  ['composed and decomposed é are two keys', { '\u00e9': 1, 'e\u0301': 2 }],
  ['Arabic and Hebrew', { سلام: 'שלום' }],
  ['control characters', '\u0000\b\t\n\u000b\f\r\u001f\u007f'],
  ['line separators', '\u2028\u2029'],
  ['quotes and slashes', '"\\/'],
  ['a text that spells an escape', '\\ud800'],
  ['null is not absent', { a: null }],
  ['numbers like keys keep their place in the text', { b: 1, a: 2 }],
  ['integers', [0, 1, -1, 255, 65_536, 2 ** 31, -(2 ** 31), Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER]],
  ['small numbers', [1e-5, 1e-7, 0.1, 2.5, 5e-324, 2.2250738585072014e-308]],
  ['large numbers', [1e21, 1.7976931348623157e308, -1e300]],
  ['a request', { input: { repo: '仓库/项目', commits: ['a1', 'b2'] }, context: {}, constraints: { max_tokens: 100 } }],
]

/** Other spellings that are legal, with what they mean. */
const SPELLINGS: readonly (readonly [string, string])[] = [
  ['white space', ' \t\r\n{ "a" : [ 1 , 2 ] } \n'],
  ['an escaped key', '{"\\u20ac":1,"\\ud83d\\ude00":2,"\\ufb33":3}'],
  ['every escape', '"\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u4e2d"'],
  ['hex digits of either case', '"\\u4E2D\\u4e2d"'],
  ['an escaped pair', '"\\ud83d\\ude80"'],
  ['1.0', '1.0'],
  ['1e0', '1e0'],
  ['10E-1', '10E-1'],
  ['0.00001', '0.00001'],
  ['1e-7', '1e-7'],
  ['5e-324', '5e-324'],
  ['a number too small, which is 0', '1e-400'],
  ['-0', '-0'],
  ['-0.0', '[-0.0]'],
  ['-0 as a value', '{"a":-0}'],
  ['1E21', '1E21'],
  ['1E+2', '1E+2'],
  ['a large integer with an exponent is a double', '9007199254740993e0'],
]

const NESTED = (levels: number): Pieces => [
  { repeat: '5b', times: levels },
  { repeat: '5d', times: levels },
]
/** A list of objects of one key each. */
/** One list and what is in it. */
const VALUES = (count: number): Pieces => [hexOf('['), { repeat: hexOf('0,'), times: count - 2 }, hexOf('0]')]
const KEYS = (count: number): Pieces => ['5b', { repeat: hexOf('{"a":0},'), times: count - 1 }, hexOf('{"a":0}]')]

const REFUSED: readonly (readonly [string, string | Uint8Array])[] = [
  ['no bytes', ''],
  ['white space only', ' '],
  ['a key twice', '{"a":1,"a":1}'],
  ['a key twice, one of them escaped', '{"a":1,"\\u0061":2}'],
  ['a key twice, deep inside', '[{"b":{"a":1,"c":2,"a":3}}]'],
  ['a Chinese key twice', '{"键":1,"键":2}'],
  ['a pair that is escaped and the same key raw', '{"🚀":1,"\\ud83d\\ude80":2}'],
  ['__proto__', '{"__proto__":{"admin":true}}'],
  ['__proto__ escaped', '{"\\u005f_proto__":1}'],
  ['constructor', '{"a":{"constructor":{"prototype":1}}}'],
  ['prototype', '[{"prototype":null}]'],
  ['half of a pair, high', '"\\ud800"'],
  ['half of a pair, low', '"\\udc00"'],
  ['a pair the wrong way round', '"\\udc00\\ud800"'],
  ['half of a pair in a key', '{"\\ud83d":1}'],
  ['half of a pair before a letter', '"\\ud83dx"'],
  ['half of a pair in UTF-8', Uint8Array.of(0x22, 0xed, 0xa0, 0x80, 0x22)],
  ['an overlong byte sequence', Uint8Array.of(0x22, 0xc0, 0x80, 0x22)],
  ['a byte that is never UTF-8', Uint8Array.of(0x22, 0xff, 0x22)],
  ['a character cut off', Uint8Array.of(0x22, 0xe4, 0xb8, 0x22)],
  ['beyond Unicode', Uint8Array.of(0x22, 0xf4, 0x90, 0x80, 0x80, 0x22)],
  ['a byte order mark', '\ufeff{}'],
  ['UTF-16', Buffer.from('{}', 'utf16le')],
  ['a large integer', '9007199254740992'],
  ['a large negative integer', '-9007199254740992'],
  ['a large integer inside', '{"id":[123456789012345678901234567890]}'],
  ['a number that overflows', '1e400'],
  ['a negative number that overflows', '{"a":-1e400}'],
  ['NaN', 'NaN'],
  ['Infinity', '[Infinity]'],
  ['a leading zero', '01'],
  ['a leading plus', '+1'],
  ['no digit before the point', '.5'],
  ['no digit after the point', '1.'],
  ['no digit in the exponent', '1e'],
  ['hexadecimal', '0x10'],
  ['only a minus', '-'],
  ['digits of another script', '"a"٣'],
  ['single quotes', "{'a':1}"],
  ['a key without quotes', '{a:1}'],
  ['a key that is a number', '{1:1}'],
  ['a comma at the end of a list', '[1,]'],
  ['a comma at the end of an object', '{"a":1,}'],
  ['two commas', '[1,,2]'],
  ['no comma', '[1 2]'],
  ['no colon', '{"a" 1}'],
  ['a comment', '{}//'],
  ['two values', '{}{}'],
  ['a byte after the value', '{}\u0000'],
  ['no-break space as white space', '\u00a0{}'],
  ['cut off', '{"a":[1'],
  ['a string without end', '"abc'],
  ['a raw tab in a string', '"a\tb"'],
  ['a raw line end in a long string', `"${'x'.repeat(100)}\n"`],
  ['an unknown escape', '"\\x41"'],
  ['an escape cut off', '"\\u00"'],
  ['an escape that is not hexadecimal', '"\\u00g0"'],
  ['a word in capitals', 'True'],
  ['a word cut off', 'nul'],
  ['undefined', 'undefined'],
  ['the wrong closing bracket', '[1}'],
]

export function jsonPayloadVectors(): Vector {
  return {
    about:
      'Payloads as application/json. `encoded`: data and the bytes that the encoder writes. `spellings`: other bytes that mean the given value. Refused: INVALID_PAYLOAD. All bytes hex.',
    encoded: DATA.map(([name, value]) => ({ name, value, bytes: toHex(encodeJson(value)) })),
    spellings: [
      ...SPELLINGS.map(([name, text]) => {
        return { name, text, bytes: hexOf(text), value: decodeJson(Buffer.from(text)) }
      }),
      { name: '32 levels', bytes: NESTED(32) },
      { name: '10,000 keys', bytes: KEYS(10_000) },
      { name: '1,000,000 values', bytes: VALUES(1_000_000) },
    ],
    refused: [
      ...REFUSED.map(([name, bytes]) => ({
        name,
        bytes: typeof bytes === 'string' ? hexOf(bytes) : toHex(bytes),
        code: 'INVALID_PAYLOAD',
      })),
      { name: '33 levels', bytes: NESTED(33), code: 'INVALID_PAYLOAD' },
      { name: '10,001 keys', bytes: KEYS(10_001), code: 'INVALID_PAYLOAD' },
      { name: '1,000,001 values', bytes: VALUES(1_000_001), code: 'INVALID_PAYLOAD' },
    ],
  }
}
