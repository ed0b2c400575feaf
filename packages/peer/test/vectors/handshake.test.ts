import { decodeHello, isHermesError, publicKey, Reader, toHex } from '@hermes-peer/protocol'
import { manualClock } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import { DEFAULTS } from '../../src/defaults.ts'
import { allowList } from '../../src/identity/allow-list.ts'
import { createIdentities } from '../../src/identity/identities.ts'
import { ownInstance } from '../../src/identity/own-instance.ts'
import { ByteQueue } from '../../src/link/byte-queue.ts'
import { type HandshakeResult, runHandshake } from '../../src/link/handshake.ts'
import type { Channel } from '../../src/network/network.ts'
import type { Random } from '../../src/random.ts'
import { keys, type Read, read, unhex } from './support.ts'

const { conversation, decisions, accepted } = read('handshake')
const known = keys()

/** Everything that one side has done. */
interface Side {
  hear(bytes: Uint8Array): void
  sent: string[]
  result: HandshakeResult | undefined
  code: string | undefined
}

const nonceOf = (kind: string): Uint8Array =>
  new Uint8Array(Buffer.from(accepted.find((one: Read) => one.kind === kind).fields.nonce, 'base64url'))

/** A side of the conversation of the vectors: with its key, its clock and what it draws by chance. */
function side(is: Read, direction: 'inbound' | 'outbound', remote: string): Side {
  const own = known.get(is.agent_id) ?? expect.fail('no such key')
  const nonce = nonceOf(direction === 'outbound' ? 'hello' : 'challenge')
  const queue = new ByteQueue()
  const random: Random = { bytes: (length) => (length === 32 ? nonce : unhex(is.link_id)), next: () => 0 }
  const self: Side = {
    sent: [],
    result: undefined,
    code: undefined,
    hear(bytes) {
      queue.push(bytes)
      run.received()
    },
  }
  const channel = {
    direction,
    remotePeer: remote,
    remoteAddress: '/ip4/127.0.0.1/tcp/4001',
    send: (bytes: Uint8Array) => {
      self.sent.push(toHex(bytes))
      return true
    },
  } as unknown as Channel
  const clock = manualClock({ start: is.now })
  const trust = allowList(
    [...known].map(([agent_id, { publicKey: admitted }]) => ({ agent_id, fingerprint: admitted.fingerprint })),
  )
  const run = runHandshake(
    {
      channel,
      own: ownInstance(own, own.publicKey, []),
      self: {
        agentId: is.agent_id,
        key: own.publicKey,
        network: 'dev-team',
        epoch: is.epoch,
        limits: { max_envelope_bytes: 1_048_576, max_in_flight: 256 },
        manifestDigest: () => is.manifest_digest,
        nextSequence: () => is.next_sequence,
        seenEpoch: () => is.seen_epoch,
      },
      identities: createIdentities({ network: 'dev-team', trust, keys: publicKey, clock, tunables: DEFAULTS }),
      clock,
      random,
      tunables: DEFAULTS,
      chosen: false,
      expected: direction === 'outbound' ? 'coder' : undefined,
    },
    queue,
    {
      done: (result) => {
        self.result = result
      },
      failed: (error) => {
        self.code = error.code
      },
    },
  )
  return self
}

/** The code that a stranger was told last, and the offset of its clock where it was told. */
function toldBy({ sent }: Side): { code: string | undefined; offset_ms?: unknown } {
  const reader = new Reader(unhex(sent.at(-1) as string))
  try {
    decodeHello(reader.part(8192, 'the refusal'))
  } catch (error) {
    if (isHermesError(error) && error.remote) return { code: error.code, ...error.details }
  }
  return { code: undefined }
}

function expectVerdict(vector: Read, judge: Side): void {
  const { code, offset_ms } = vector
  if (code === undefined) {
    expect(judge.code).toBeUndefined()
    return
  }
  expect(judge.code).toBeDefined()
  expect(judge.result).toBeUndefined()
  expect(toldBy(judge)).toEqual({ code, ...(offset_ms === undefined ? {} : { offset_ms }) })
}

describe('the responder', () => {
  const { responder } = decisions
  const start = (remote = responder.remote) => side(responder, 'inbound', remote)

  it('answers with the challenge and the welcome of the conversation', () => {
    const self = start()
    self.hear(unhex(conversation.hello))
    expect(self.sent).toEqual([conversation.challenge])
    self.hear(unhex(conversation.proof))
    expect(self.sent).toEqual([conversation.challenge, conversation.welcome])
    expect(self.result?.remote.agentId).toBe('pm')
  })

  it.each(responder.hellos as Read[])('judges a hello: $name', (vector) => {
    const self = start(vector.remote)
    self.hear(unhex(vector.bytes))
    expectVerdict(vector, self)
    if (vector.code === undefined) expect(self.sent).toHaveLength(1)
  })

  it.each(responder.proofs as Read[])('judges a proof: $name', (vector) => {
    const self = start()
    self.hear(unhex(conversation.hello))
    self.hear(unhex(vector.bytes))
    expectVerdict(vector, self)
    if (vector.code === undefined) expect(self.result?.linkId).toBe(responder.link_id)
  })
})

describe('the initiator', () => {
  const { initiator } = decisions
  const start = (remote = initiator.remote) => side(initiator, 'outbound', remote)

  it('says the hello and the proof of the conversation', () => {
    const self = start()
    expect(self.sent).toEqual([conversation.hello])
    self.hear(unhex(conversation.challenge))
    expect(self.sent).toEqual([conversation.hello, conversation.proof])
    self.hear(unhex(conversation.welcome))
    expect(self.sent).toHaveLength(2)
  })

  it.each(initiator.challenges as Read[])('judges a challenge: $name', (vector) => {
    const self = start(vector.remote)
    self.hear(unhex(vector.bytes))
    expectVerdict(vector, self)
    if (vector.code === undefined) expect(self.sent).toHaveLength(2)
  })

  it.each(initiator.welcomes as Read[])('judges a welcome: $name', (vector) => {
    const self = start()
    self.hear(unhex(conversation.challenge))
    self.hear(unhex(vector.bytes))
    expectVerdict(vector, self)
    if (vector.code === undefined) expect(self.result?.remote.agentId).toBe('coder')
  })
})
