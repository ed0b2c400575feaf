import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  decodeHeader,
  encodeHeader,
  type Header,
  type HeaderDraft,
  isHermesError,
  type MessageType,
  toHex,
  utf8,
} from '../../src/index.ts'
import { hash, RUNS, UNTIL_NOTICED, verdictOf } from './support.ts'

// Drawn as one number each: their letters have no meaning, and drawing every letter takes most of the time.
const hex = (length: number) => hash.map((bytes) => toHex(bytes).slice(0, length))
const id = (prefix: string) =>
  hash.map((bytes) => `${prefix}_${Buffer.from(bytes).toString('base64').replaceAll(/[+/]/g, 'Z').slice(0, 16)}`)

const name = fc.stringMatching(/^[a-z0-9][a-z0-9._-]{0,12}$/)
const agent = fc.array(name, { minLength: 1, maxLength: 4 }).map((segments) => segments.join('/'))
const capability = fc
  .tuple(name, fc.option(fc.integer({ min: 2, max: 999_999 })))
  .map(([one, major]) => (major === null ? one : `${one}@${major}`))
const whole = (min = 0) =>
  fc.oneof(
    fc.integer({ min, max: 100 }),
    fc.maxSafeNat().filter((value) => value >= min),
  )
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })

type Kind = 'answer' | 'plain' | 'work' | 'topic'
const KINDS: Record<Kind, readonly MessageType[]> = {
  answer: ['response', 'ack', 'error', 'end'],
  plain: ['heartbeat', 'cancel'],
  work: ['request', 'submit', 'event'],
  topic: ['event'],
}

const common = fc.record({
  network: name,
  message_id: id('msg'),
  correlation_id: maybe(id('corr')),
  trace_id: hex(32),
  span_id: hex(16),
  sender: fc.record({ agent_id: agent, key: hex(64).map((text) => `sha256:${text}`) }),
  session_id: maybe(id('sess')),
  epoch: whole(1),
  ordered: maybe(fc.boolean()),
  timestamp: fc.integer({ min: 0, max: 2 ** 52 }),
  expires_at: maybe(whole()),
  timeout_ms: maybe(fc.integer({ min: 0, max: 2 ** 51 })),
  priority: maybe(fc.constantFrom<Header['priority']>(1, 2, 3, 4, 5)),
  attempt: maybe(whole(1)),
  max_hops: maybe(fc.integer({ min: 0, max: 7 })),
  path: maybe(
    fc.array(
      fc.tuple(agent, capability).map(([who, what]) => `${who}#${what}`),
      { maxLength: 5 },
    ),
  ),
  content_type: maybe(fc.constantFrom<Header['content_type']>('application/json', 'application/msgpack')),
  schema_version: maybe(fc.stringMatching(/^[0-9]{1,8}$/)),
  payload_sha256: hex(64),
  payload_size: whole(),
  delegation: maybe(hex(64)),
})

const drafts: fc.Arbitrary<HeaderDraft> = fc
  .record({
    base: common,
    kind: fc.constantFrom<Kind>('answer', 'plain', 'work', 'topic'),
    type: fc.nat(11),
    target: capability,
    other: agent,
    by: fc.boolean(),
    stream: fc.boolean(),
    stored: fc.boolean(),
    life: whole(1),
    sequence: whole(1),
    leaf: hex(64),
    topic: name,
  })
  .map(({ base, kind, type, target, other, by, stream, stored, life, sequence, leaf, topic }): HeaderDraft => {
    const message_type = KINDS[kind][type % KINDS[kind].length] as MessageType
    if (kind === 'topic') return { ...base, message_type, recipient: { topic } }
    if (kind !== 'work') {
      const answers = kind === 'answer' ? { in_reply_to: leaf } : {}
      return {
        ...base,
        message_type,
        recipient: { agent_id: other },
        target_capability: by ? target : undefined,
        ...answers,
      }
    }
    const apart = (message_type === 'request' && stream) || base.payload_size > 1024 * 1024
    const anyLife = message_type === 'submit' || (message_type === 'event' && stored)
    return {
      ...base,
      message_type,
      recipient: by ? { capability: target, via: other } : { agent_id: other },
      target_capability: target,
      ...(message_type === 'submit' ? { call_type: 'task' as const } : {}),
      ...(message_type === 'request' && stream ? { call_type: 'stream' as const } : {}),
      ...(message_type === 'event' && stored ? { ack: 'stored' as const } : {}),
      recipient_epoch: anyLife && stream ? 0 : life,
      ...(apart ? {} : { sequence }),
    }
  })
  .filter((draft) => verdictOf(() => encodeHeader(draft)) === 'accepted')

const DEFAULTS = {
  version: '1.0',
  correlation_id: undefined,
  target_capability: undefined,
  call_type: 'request',
  session_id: undefined,
  recipient_epoch: 0,
  sequence: 0,
  ordered: true,
  priority: 3,
  attempt: 1,
  max_hops: 4,
  path: [],
  ack: 'none',
  content_type: 'application/json',
  schema_version: '1',
  delegation: undefined,
  in_reply_to: undefined,
} as const

/** The draft with its defaults, written here a second time from the table of the wire text. */
function meant(draft: HeaderDraft): Header {
  const given = Object.fromEntries(Object.entries(draft).filter(([, value]) => value !== undefined)) as HeaderDraft
  const submit = draft.message_type === 'submit'
  const timeout_ms = draft.timeout_ms ?? (submit ? 10_000 : draft.call_type === 'stream' ? 300_000 : 60_000)
  const expires_at = draft.expires_at ?? draft.timestamp + (submit ? 24 * 3_600_000 : timeout_ms)
  return { ...DEFAULTS, timeout_ms, expires_at, ...given } as Header
}

type Decode = typeof decodeHeader
const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1')

/** A header with one key written twice says two things, and is refused whichever of them would count. */
const speaksOnce = (decode: Decode) =>
  fc.property(drafts, fc.nat(), fc.boolean(), (draft, at, first) => {
    const text = textOf(encodeHeader(draft))
    const members = Object.entries(JSON.parse(text) as object).map(
      ([key, value]) => `"${key}":${JSON.stringify(value)}`,
    )
    const twice = members[at % members.length] as string
    const list = first ? [twice, ...members] : [...members, twice]
    expect(verdictOf(() => decode(utf8(`{${list.join(',')}}`)))).toBe('MALFORMED')
  })

describe('a header', () => {
  it('comes back with its defaults filled in, encodes to the same bytes again, and means the same in any order', () => {
    fc.assert(
      fc.property(drafts, fc.nat(), (draft, turn) => {
        const bytes = encodeHeader(draft)
        const header = decodeHeader(bytes)
        expect(header).toEqual(meant(draft))
        expect(textOf(encodeHeader(header))).toBe(textOf(bytes))
        const entries = Object.entries(JSON.parse(textOf(bytes)) as object)
        const at = turn % entries.length
        const turned = Object.fromEntries([...entries.slice(at), ...entries.slice(0, at)])
        expect(decodeHeader(utf8(JSON.stringify(turned)))).toEqual(header)
      }),
      RUNS,
    )
  })

  it('says everything once', () => {
    fc.assert(speaksOnce(decodeHeader), RUNS)
  })

  it('is refused or means something else when a letter changes, and never goes wrong in another way', () => {
    fc.assert(
      fc.property(drafts, fc.nat(), fc.nat(255), (draft, at, byte) => {
        const bytes = Uint8Array.from(encodeHeader(draft))
        const place = at % bytes.length
        fc.pre(bytes[place] !== byte)
        bytes[place] = byte
        try {
          expect(textOf(encodeHeader(decodeHeader(bytes)))).not.toBe(textOf(encodeHeader(draft)))
        } catch (error) {
          if (!isHermesError(error)) throw error
          expect(['MALFORMED', 'UNSUPPORTED_VERSION']).toContain(error.code)
        }
      }),
      RUNS,
    )
  })

  it('of a newer minor version is read without what is not known', () => {
    fc.assert(
      fc.property(
        drafts,
        fc.stringMatching(/^[a-z_]{1,10}$/),
        fc.oneof(fc.boolean(), fc.maxSafeInteger()),
        (draft, key, value) => {
          fc.pre(!Object.hasOwn(meant(draft), key) && !['constructor', 'prototype', '__proto__'].includes(key))
          const fields = { ...(JSON.parse(textOf(encodeHeader(draft))) as object), version: '1.7', [key]: value }
          expect(decodeHeader(utf8(JSON.stringify(fields)))).toEqual({ ...meant(draft), version: '1.7' })
          expect(verdictOf(() => decodeHeader(utf8(JSON.stringify({ ...fields, version: '1.0' }))))).toBe('MALFORMED')
        },
      ),
      RUNS,
    )
  })
})

describe('the checks above', () => {
  it('notice a decoder that accepts duplicate keys', () => {
    const lenient: Decode = (bytes) => decodeHeader(utf8(JSON.stringify(JSON.parse(textOf(bytes)))))
    expect(() => fc.assert(speaksOnce(lenient), UNTIL_NOTICED)).toThrow('Property failed')
  })
})
