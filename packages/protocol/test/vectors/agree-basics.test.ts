import { ed25519 } from '@noble/curves/ed25519.js'
import { describe, expect, it } from 'vitest'
import {
  broadcastTopic,
  checkName,
  ERROR_TABLE,
  fromWireError,
  HermesError,
  ID_PATTERNS,
  isAgentId,
  isCapabilityName,
  isName,
  peerIdOf,
  presenceTopic,
  providerCid,
  providerKey,
  publicKey,
  signingKey,
  toHex,
  toWireError,
  trustTopic,
} from '../../src/index.ts'
import { codeOf, expected, type Read, read, verdicts } from './support.ts'

const raw = (vector: Read) => Buffer.from(vector.public_key, 'hex')

describe('keys', () => {
  const { keys, refused, signatures } = read('keys')

  it.each(keys as Read[])('of $agent_id come from the seed', ({ seed, public_key, fingerprint, peer_id }) => {
    const { publicKey: own } = signingKey(Buffer.from(seed, 'hex'))
    expect(toHex(own.raw)).toBe(public_key)
    expect(own.fingerprint).toBe(fingerprint)
    expect(peerIdOf(own.raw)).toBe(peer_id)
  })

  it('are refused when they are no point of the prime-order group in its one encoding', () => {
    expect(verdicts(refused, (vector) => publicKey(raw(vector)))).toEqual(expected(refused))
  })

  it('of small order in the vectors are of small order, and are all there are', () => {
    const small = refused.filter(({ name }: Read) => name.startsWith('small order'))
    const points = small.map((vector: Read) => ed25519.Point.fromBytes(raw(vector), true))
    for (const point of points) expect(point.clearCofactor().is0()).toBe(true)
    // The eight points; six of the encodings are second ones.
    expect(new Set(points.map((point: InstanceType<typeof ed25519.Point>) => point.toHex())).size).toBe(8)
    expect(new Set(small.map(({ public_key }: Read) => public_key)).size).toBe(14)
  })

  it.each(signatures as Read[])('judge a signature: $name', (vector) => {
    const message = Buffer.from(vector.message, 'hex')
    expect(publicKey(raw(vector)).verify(message, Buffer.from(vector.signature, 'hex'))).toBe(vector.holds)
  })
})

describe('names', () => {
  const { about: _, ...kinds } = read('names')
  const matches = (pattern: RegExp) => (text: string) => pattern.test(text)
  const judges: Record<string, (text: string) => boolean> = {
    network: isName,
    topic: isName,
    capability: isCapabilityName,
    agent_id: isAgentId,
    message_id: matches(ID_PATTERNS.message_id),
    correlation_id: matches(ID_PATTERNS.correlation_id),
    session_id: matches(ID_PATTERNS.session_id),
  }

  it.each(Object.keys(kinds))('%s: F-40 one legal spelling, byte by byte', (kind) => {
    const judge = judges[kind] as (text: string) => boolean
    expect(kinds[kind].accepted.filter((text: string) => !judge(text))).toEqual([])
    expect(kinds[kind].refused.filter(judge)).toEqual([])
  })

  it.each(['network', 'topic', 'capability', 'agent_id'] as const)('%s: a user is told INVALID_NAME', (kind) => {
    for (const text of kinds[kind].accepted) expect(checkName(kind, text)).toBe(text)
    const codes: string[] = kinds[kind].refused.map((text: string) => codeOf(() => checkName(kind, text)))
    expect(new Set(codes)).toEqual(new Set(['INVALID_NAME']))
  })
})

describe('records', () => {
  const { providers, topics } = read('records')

  it.each(providers as Read[])('provider record of $network, $capability', ({ network, capability, key, cid }) => {
    expect(providerKey(network, capability)).toBe(key)
    expect(toHex(providerCid(network, capability))).toBe(cid)
  })

  it.each(topics as Read[])('topics of $network', ({ network, topic, presence, trust, broadcast }) => {
    expect([presenceTopic(network), trustTopic(network), broadcastTopic(network, topic)]).toEqual([
      presence,
      trust,
      broadcast,
    ])
  })
})

describe('errors', () => {
  const { table, written, read: readings } = read('errors')

  it('the table is the one that is written down', () => {
    expect(table.map(({ code }: Read) => code)).toEqual(Object.keys(ERROR_TABLE))
  })

  it.each(written as Read[])('are told: $name', ({ code, options, payload }) => {
    expect(toWireError(new HermesError(code, options))).toEqual(payload)
  })

  it.each(readings as Read[])('are read: $name', ({ payload, error }) => {
    const got = fromWireError(payload)
    expect(got).toMatchObject({
      code: error.code,
      message: error.message,
      source: error.source,
      retryable: error.retryable,
      details: error.details,
      remote: true,
    })
    expect(got.retryAfterMs).toBe(error.retry_after_ms)
    expect(got.declared?.name).toBe(error.declared)
  })
})
