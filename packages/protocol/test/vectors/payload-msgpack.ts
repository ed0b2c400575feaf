import { decodePayload, encodePayload, fromHex, toHex } from '../../src/index.ts'
import { DATA } from './payload-json.ts'
import { hexOf, type Pieces, type Vector } from './scene.ts'

/** Bytes that are legal, also those that no short encoder writes. */
const SPELLINGS: readonly (readonly [string, string])[] = [
  ['positive fixint', '7f'],
  ['negative fixint', 'e0'],
  ['uint 8', 'cc80'],
  ['uint 8 that could be shorter', 'cc01'],
  ['uint 16', 'cdffff'],
  ['uint 32', 'ceffffffff'],
  ['uint 64', 'cf001fffffffffffff'],
  ['int 8', 'd080'],
  ['int 16', 'd18000'],
  ['int 32', 'd280000000'],
  ['int 64', 'd3ffe0000000000001'],
  ['int 64 that is positive', 'd3001fffffffffffff'],
  ['float 32', 'ca3fc00000'],
  ['float 64', 'cb3fb999999999999a'],
  ['float 64 that is an integer', 'cb4000000000000000'],
  ['float 64 beyond 2^53', 'cb4480f0cf064dd592'],
  ['float 64, minus zero', 'cb8000000000000000'],
  ['float 32, minus zero', 'ca80000000'],
  ['float 64, the smallest', 'cb0000000000000001'],
  ['nil', 'c0'],
  ['false', 'c2'],
  ['true', 'c3'],
  ['fixstr', 'a3e4b8ad'],
  ['str 8', 'd903e4b8ad'],
  ['str 16', 'da0003e4b8ad'],
  ['str 32', 'db00000003e4b8ad'],
  ['fixarray', '920102'],
  ['array 16', 'dc0001c0'],
  ['array 32', 'dd00000001c0'],
  ['fixmap', '82a16101a16202'],
  ['map 16', 'de0001a161c0'],
  ['map 32', 'df00000001a161c0'],
  ['a key as str 8', '81d90161c0'],
  ['a key as str 32', '81db0000000161c0'],
]

const REFUSED: readonly (readonly [string, string])[] = [
  ['no bytes', ''],
  ['a byte after the value', 'c0c0'],
  ['0xc1, which is never used', 'c1'],
  ['bin 8', 'c40101'],
  ['bin 16', 'c5000101'],
  ['bin 32', 'c60000000101'],
  ['ext 8', 'c7010101'],
  ['ext 16', 'c800010101'],
  ['ext 32', 'c90000000101' + '01'],
  ['fixext 1', 'd40101'],
  ['fixext 4, a timestamp', 'd6ff00000000'],
  ['fixext 16', `d801${'00'.repeat(16)}`],
  ['NaN as float 64', 'cb7ff8000000000000'],
  ['NaN as float 32', 'ca7fc00000'],
  ['infinity as float 64', 'cb7ff0000000000000'],
  ['minus infinity as float 32', 'caff800000'],
  ['uint 64 of 2^53', 'cf0020000000000000'],
  ['the largest uint 64', 'cfffffffffffffffff'],
  ['int 64 of -2^53', 'd3ffe0000000000000'],
  ['a key that is an integer', '8101c0'],
  ['a key that is nil', '81c0c0'],
  ['a key that is bin', '81c40161c0'],
  ['a key that is a list', '8190c0'],
  ['a key twice', '82a16101a16102'],
  ['a key twice in two spellings', '82a16101d9016102'],
  ['a key twice, deep inside', '9181a16282a16301a16302'],
  ['__proto__', `81a9${hexOf('__proto__')}80`],
  ['constructor', `81ab${hexOf('constructor')}01`],
  ['prototype', `81a9${hexOf('prototype')}01`],
  ['a text that is not UTF-8', 'a2c080'],
  ['a text with half of a pair', 'a3eda080'],
  ['a text cut off', 'a3e4b8'],
  ['a text cut off within a character', 'a2e4b8'],
  ['a list cut off', '9201'],
  ['a map without its last value', '81a161'],
  ['an integer cut off', 'cd01'],
  ['a length cut off', 'da00'],
  ['a list that claims four thousand million items', 'ddffffffff'],
  ['a map that claims four thousand million keys', 'dfffffffff'],
  ['a text that claims four thousand million bytes', 'dbffffffff'],
]

const NESTED = (levels: number): Pieces => [{ repeat: '91', times: levels - 1 }, '90']
const number = (count: number) => count.toString(16).padStart(4, '0')
/** One list and what is in it. */
const VALUES = (count: number): Pieces => [
  `dd${(count - 1).toString(16).padStart(8, '0')}`,
  { repeat: '00', times: count - 1 },
]
const KEYS = (count: number): Pieces => [`dc${number(count)}`, { repeat: '81a16100', times: count }]

export function msgpackPayloadVectors(): Vector {
  return {
    about:
      'Payloads as application/msgpack: the JSON data model only. `encoded`: data and the bytes that the encoder writes. `spellings`: other bytes that mean the given value. Refused: INVALID_PAYLOAD. All bytes hex.',
    encoded: DATA.map(([name, value]) => ({ name, value, bytes: toHex(encodePayload('application/msgpack', value)) })),
    spellings: [
      ...SPELLINGS.map(([name, bytes]) => {
        return { name, bytes, value: decodePayload('application/msgpack', fromHex(bytes)) }
      }),
      { name: '32 levels', bytes: NESTED(32) },
      { name: '10,000 keys', bytes: KEYS(10_000) },
      { name: '1,000,000 values', bytes: VALUES(1_000_000) },
    ],
    refused: [
      ...REFUSED.map(([name, bytes]) => ({ name, bytes, code: 'INVALID_PAYLOAD' })),
      { name: '33 levels', bytes: NESTED(33), code: 'INVALID_PAYLOAD' },
      { name: '10,001 keys', bytes: KEYS(10_001), code: 'INVALID_PAYLOAD' },
      { name: '1,000,001 values', bytes: VALUES(1_000_001), code: 'INVALID_PAYLOAD' },
    ],
  }
}
