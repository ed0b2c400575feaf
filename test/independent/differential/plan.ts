import fc from 'fast-check'
import type { Json } from '../json.ts'

export const TYPES = [
  'request',
  'stream',
  'response',
  'ack',
  'error',
  'end',
  'heartbeat',
  'cancel',
  'event',
  'acked event',
  'topic',
  'submit',
] as const

/** Where something is done to a frame while it is made, in the order in which it is made. */
export const PLACES = ['payload', 'binding', 'fields', 'spelling', 'signature', 'hops', 'bytes'] as const
export type Place = (typeof PLACES)[number]

/** One change. Which of its kind, and where, is chosen by numbers, so that each shrinks on its own. */
export interface Change {
  place: Place
  kind: number
  at: number
  byte: number
  value: Json
}

/** Everything that a frame is made of. */
export interface Plan {
  type: (typeof TYPES)[number]
  messagePack: boolean
  payload: Json
  tag: 0 | 1 | 2
  count: number
  index: number
  hops: number
  changes: Change[]
}

const NAMES = ['coder', 'pm', 'reviewer', 'ghost', 'Coder', 'a/b', 'fix-test', 'fix-test@2', 'fix-test@1', '程序员', '']
const IDS = ['msg_0123456789abcdef', 'corr_0123456789abcdef', 'sess_0123456789abcdef', 'c'.repeat(64), 'C'.repeat(64)]
const VERSIONS = ['1.0', '1.1', '1.12', '2.0', '0.9', '01.0', '1']
const WORDS = ['request', 'response', 'task', 'stream', 'none', 'stored', 'application/msgpack', '1', '12']

/** What may stand in a field: right for some and wrong for most. */
const fieldValue: fc.Arbitrary<Json> = fc.oneof(
  fc.constantFrom<Json>(null, true, false, 1.5, -1, 2 ** 53, 2 ** 53 - 1, 1e21, [], {}),
  fc.integer({ min: 0, max: 9 }),
  fc.constantFrom<Json>(...NAMES, ...IDS, ...VERSIONS, ...WORDS),
  fc.array(fc.constantFrom<Json>('pm#plan', 'coder#fix-test', 'a/b#c@2', 'pm', 'pm#plan@1', 7), { maxLength: 7 }),
  fc.constantFrom<Json>(
    { agent_id: 'reviewer' },
    { agent_id: 'coder', via: 'pm' },
    { capability: 'fix-test', via: 'coder' },
    { capability: 'other', via: 'coder' },
    { topic: 'builds' },
    { topic: 'Builds' },
  ),
)

const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 8 }),
  fc.constantFrom('\u20ac', '\ud83d\ude00', '\ufb33', '任务', '👩‍💻', '\u0000', '"\\/'),
)
const key = text.filter((one) => !['__proto__', 'constructor', 'prototype'].includes(one))
const number = fc.oneof(
  fc.integer(),
  fc.maxSafeInteger(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.constantFrom(1e-5, 1e-7, 5e-324, 1e21, -0),
)

const data: fc.Arbitrary<Json> = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    fc.constantFrom<Json>(null, true, false),
    number.filter((one) => !Number.isInteger(one) || Number.isSafeInteger(one) || Math.abs(one) >= 1e21),
    text,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(key, tie('value'), { maxKeys: 4, noNullPrototype: true }) as fc.Arbitrary<Json>,
  ),
})).value

const change = (place: Place): fc.Arbitrary<Change> =>
  fc.record({ place: fc.constant(place), kind: fc.nat(99), at: fc.nat(9999), byte: fc.nat(255), value: fieldValue })

const changes = fc.oneof(
  { weight: 1, arbitrary: fc.constant<Change[]>([]) },
  { weight: 6, arbitrary: fc.constantFrom(...PLACES).chain((place) => fc.tuple(change(place))) },
  { weight: 1, arbitrary: fc.array(fc.constantFrom(...PLACES).chain(change), { minLength: 2, maxLength: 3 }) },
)

export const plan: fc.Arbitrary<Plan> = fc.record({
  type: fc.constantFrom(...TYPES),
  messagePack: fc.boolean(),
  payload: data,
  tag: fc.constantFrom<0 | 1 | 2>(0, 0, 1, 2),
  count: fc.oneof({ weight: 6, arbitrary: fc.integer({ min: 1, max: 3 }) }, fc.integer({ min: 4, max: 16 })),
  index: fc.nat(15),
  hops: fc.constantFrom(0, 0, 1, 2, 3),
  changes,
})
