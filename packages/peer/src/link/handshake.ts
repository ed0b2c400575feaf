import {
  type Challenge,
  type ContentType,
  concat,
  decodeChallenge,
  decodeHello,
  decodeProofMessage,
  decodeWelcome,
  type ErrorCode,
  encodeHello,
  encodeProof,
  encodeRefusal,
  equalBytes,
  type Hello,
  HermesError,
  isHermesError,
  LIMITS,
  LINK_PROTOCOL,
  PROTOCOL_VERSION,
  type Proof,
  type PublicKey,
  part,
  peerIdOf,
  REFUSALS,
  SIGNATURE_LENGTH,
  signTranscript,
  type TranscriptContext,
  toHex,
  verifyTranscript,
  type Welcome,
} from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Identities, Identity, Meeting } from '../identity/identities.ts'
import type { OwnInstance } from '../identity/own-instance.ts'
import type { Channel } from '../network/network.ts'
import type { Random } from '../random.ts'
import type { ByteQueue } from './byte-queue.ts'
import type { LinkSelf, Remote } from './remote.ts'

export interface HandshakeContext {
  readonly channel: Channel
  /** Our own instance whose channel this is. */
  readonly own: OwnInstance
  readonly self: LinkSelf
  readonly identities: Identities
  readonly clock: Clock
  readonly random: Random
  readonly tunables: Tunables
  /** The user gave the address that was dialled. */
  readonly chosen: boolean
  /** The agent that must answer, when one is meant. */
  readonly expected?: string | undefined
}

/** What the two sides agreed on, and a name for the link. */
export interface HandshakeResult {
  readonly remote: Remote
  readonly linkId: string
}

/** Every other reason is told as `HANDSHAKE_REFUSED`, and in full to our own log only. */
const TOLD: ReadonlySet<ErrorCode> = new Set(REFUSALS)

const CONTENT_TYPES: readonly ContentType[] = ['application/json', 'application/msgpack']

/**
 * The four messages as a state machine over received bytes. It ends by `done` or `failed`, once; bytes behind the last message
 * stay in the queue for the link. Nothing outside changes before the other side has proven itself.
 */
export function runHandshake(
  context: HandshakeContext,
  queue: ByteQueue,
  ends: { done(result: HandshakeResult): void; failed(error: HermesError): void },
): { received(): void } {
  const side = context.channel.direction === 'outbound' ? initiator(context) : responder(context)
  let over = false
  const fail = (error: unknown): void => {
    over = true
    const refusal = HermesError.from(error, 'HANDSHAKE_REFUSED')
    if (!refusal.remote) tell(context.channel, refusal)
    ends.failed(refusal)
  }
  const received = (): void => {
    try {
      while (!over) {
        const message = side.signed() ? signedMessage(queue, side) : queue.part(LIMITS.handshake)
        if (!message) return
        const result = side.receive(message)
        if (result) {
          over = true
          ends.done(result)
        }
      }
    } catch (error) {
      fail(error)
    }
  }
  try {
    side.begin()
  } catch (error) {
    fail(error)
  }
  return { received }
}

interface Side {
  begin(): void
  /** Whether the next message is followed by a signature. */
  signed(): boolean
  /** The body of a signed message that has come without its signature so far. */
  held: Uint8Array | undefined
  receive(message: Uint8Array): HandshakeResult | undefined
}

/** A signed message: its body first, then 64 bytes; a refusal in its place has none and is read at once. */
function signedMessage(queue: ByteQueue, side: Side): Uint8Array | undefined {
  if (!side.held) {
    side.held = queue.part(LIMITS.handshake)
    if (!side.held) return undefined
    if (isRefusal(side.held)) return side.held
  }
  const signature = queue.take(SIGNATURE_LENGTH)
  if (!signature) return undefined
  const message = concat([side.held, signature])
  side.held = undefined
  return message
}

const REFUSAL = Buffer.from('{"error_code":')
const isRefusal = (body: Uint8Array) => equalBytes(body.subarray(0, REFUSAL.length), REFUSAL)

function tell(channel: Channel, error: HermesError): void {
  const offset = error.code === 'CLOCK_SKEW' ? error.details.offset_ms : undefined
  channel.send(
    encodeRefusal({
      error_code: TOLD.has(error.code) ? error.code : 'HANDSHAKE_REFUSED',
      ...(typeof offset === 'number' ? { offset_ms: offset } : {}),
    }),
  )
}

function initiator(context: HandshakeContext): Side {
  const { channel, self, own, clock } = context
  const hello = helloOf(context)
  const messages: Uint8Array[] = []
  let sentAt = 0
  let challenge: Challenge | undefined
  let met: Met | undefined
  const send = (bytes: Uint8Array): void => {
    messages.push(bytes)
    channel.send(bytes)
  }
  return {
    held: undefined,
    begin() {
      sentAt = clock.monotonic()
      send(encodeHello(hello))
    },
    signed: () => challenge !== undefined,
    receive(message) {
      if (!challenge) {
        const offered = decodeChallenge(message)
        const took = clock.monotonic() - sentAt
        met = meet(context, offered, offered.time - Math.round(hello.time + took / 2))
        if (!hello.versions.includes(offered.chosen.version)) {
          throw new HermesError('UNSUPPORTED_VERSION', {
            message: `version ${offered.chosen.version} was chosen, which was not offered`,
          })
        }
        if (offered.chosen.features.some((feature) => !hello.features.includes(feature))) {
          throw new HermesError('HANDSHAKE_REFUSED', { message: 'a feature was chosen that was not offered' })
        }
        if (equalBytes(offered.nonce, hello.nonce))
          throw new HermesError('HANDSHAKE_REFUSED', { message: 'our own nonce came back' })
        challenge = offered
        messages.push(part(message))
        const body = encodeProof(proofOf(self, offered.agent_id))
        send(concat([body, signTranscript('proof', transcript(context, [...messages, body]), own.key)]))
        return undefined
      }
      const { body, signature } = split(message)
      const welcome = welcomeOf(body)
      verify('welcome', context, [...messages, part(body)], signature, (met as Met).identity.signer)
      checkEpochs(self, welcome, challenge.agent_id)
      proven(context, met as Met)
      return {
        linkId: welcome.link_id,
        remote: remoteOf(
          context,
          challenge,
          welcome,
          met as Met,
          challenge.chosen.content_types,
          challenge.chosen.features,
        ),
      }
    },
  }
}

function responder(context: HandshakeContext): Side {
  const { channel, self, own, clock, random } = context
  const messages: Uint8Array[] = []
  let hello: Hello | undefined
  let met: Met | undefined
  let chosen: Challenge['chosen'] | undefined
  return {
    held: undefined,
    begin() {},
    signed: () => hello !== undefined,
    receive(message) {
      if (!hello) {
        const offered = decodeHello(message)
        met = meet(context, offered, offered.time - clock.now())
        chosen = choose(offered)
        hello = offered
        const answer = encodeHello({ ...helloOf(context), chosen } as Challenge)
        messages.push(part(message), answer)
        channel.send(answer)
        return undefined
      }
      const { body, signature } = split(message)
      const proof = decodeProofMessage(body)
      verify('proof', context, [...messages, part(body)], signature, (met as Met).identity.signer)
      checkEpochs(self, proof, hello.agent_id)
      proven(context, met as Met)
      messages.push(concat([part(body), signature]))
      const linkId = toHex(random.bytes(8))
      const welcome = encodeProof({ ...proofOf(self, hello.agent_id), link_id: linkId } as Proof)
      channel.send(concat([welcome, signTranscript('welcome', transcript(context, [...messages, welcome]), own.key)]))
      return {
        linkId,
        remote: remoteOf(context, hello, proof, met as Met, chosen?.content_types ?? [], chosen?.features ?? []),
      }
    },
  }
}

interface Met {
  identity: Identity
  offsetMs: number
  meeting: Meeting
}

function proven({ identities }: HandshakeContext, { identity, meeting }: Met): void {
  identities.proven(identity, meeting)
}

/** Judges who the other side says it is, before anything of ours is told: network, key, identity, trust, clock. */
function meet(context: HandshakeContext, hello: Hello, offsetMs: number): Met {
  const { self, channel, identities, chosen, expected, tunables } = context
  if (hello.network !== self.network) {
    throw new HermesError('HANDSHAKE_REFUSED', {
      message: `${hello.agent_id} is of network ${hello.network}, this peer of ${self.network}`,
    })
  }
  const identity = identities.read(hello)
  const { agentKey, signer } = identity
  if (peerIdOf(signer.raw) !== channel.remotePeer) {
    throw new HermesError('IDENTITY_MISMATCH', {
      message: `${hello.agent_id} showed a key that is not the one of its connection`,
    })
  }
  const same = agentKey.fingerprint === self.key.fingerprint
  if (same || hello.agent_id === self.agentId) {
    throw new HermesError(same ? 'DUPLICATE_AGENT' : 'IDENTITY_MISMATCH', {
      message: same
        ? 'the other side has this agent’s own key: a connection to oneself, or a copied key file'
        : `the other side calls itself ${self.agentId} as this agent does, with key ${agentKey.fingerprint} against ${self.key.fingerprint}`,
    })
  }
  if (expected !== undefined && hello.agent_id !== expected) {
    throw new HermesError('IDENTITY_MISMATCH', { message: `${expected} was dialled, ${hello.agent_id} answered` })
  }
  const meeting: Meeting = { met: channel.direction, address: channel.remoteAddress, chosen }
  const verdict = identities.judge(identity, meeting)
  if (!verdict.admitted) throw new HermesError(verdict.code, { message: verdict.reason })
  if (Math.abs(offsetMs) > tunables.maxClockOffsetMs) {
    throw new HermesError('CLOCK_SKEW', {
      message: `the clock of ${hello.agent_id} is ${offsetMs} ms from this one, ${tunables.maxClockOffsetMs} ms are tolerated`,
      details: { offset_ms: offsetMs },
    })
  }
  return { identity, offsetMs, meeting }
}

function choose(hello: Hello): Challenge['chosen'] {
  if (!hello.versions.includes(PROTOCOL_VERSION)) {
    throw new HermesError('UNSUPPORTED_VERSION', {
      message: `${hello.agent_id} speaks ${hello.versions.join(', ')}, this peer ${PROTOCOL_VERSION}`,
    })
  }
  return {
    version: PROTOCOL_VERSION,
    content_types: CONTENT_TYPES.filter((type) => hello.content_types.includes(type)),
    features: [],
  }
}

function helloOf({ self, own, clock, random }: HandshakeContext): Hello {
  return {
    versions: [PROTOCOL_VERSION],
    content_types: CONTENT_TYPES,
    features: [],
    network: self.network,
    nonce: random.bytes(32),
    agent_id: self.agentId,
    key: self.key.raw,
    certificates: own.certificates,
    limits: self.limits,
    time: clock.now(),
  }
}

function proofOf(self: LinkSelf, other: string): Proof {
  const revocations = self.revocations?.()
  return {
    epoch: self.epoch,
    next_sequence: self.nextSequence(other),
    seen_epoch: self.seenEpoch(other),
    manifest_digest: self.manifestDigest(),
    ...(revocations === undefined ? {} : { revocations }),
  }
}

/** Of two processes with one key the one with the lower epoch is told that it is the duplicate. */
function checkEpochs(self: LinkSelf, proof: Proof, agentId: string): void {
  const seen = self.seenEpoch(agentId)
  if (proof.epoch < seen) {
    throw new HermesError('DUPLICATE_AGENT', {
      message: `${agentId} came with life ${proof.epoch}, but life ${seen} of it is known: another process runs under its key`,
      details: { epoch: proof.epoch, seen },
    })
  }
  if (proof.seen_epoch > self.epoch) {
    throw new HermesError('DUPLICATE_AGENT', {
      message: `${agentId} knows a later life of this agent (${proof.seen_epoch}): another process runs under this key`,
      details: { epoch: self.epoch, seen: proof.seen_epoch, self: true },
    })
  }
}

function transcript(
  { channel, own: { peerId }, self }: HandshakeContext,
  messages: readonly Uint8Array[],
): TranscriptContext {
  const outbound = channel.direction === 'outbound'
  return {
    network: self.network,
    protocol: LINK_PROTOCOL,
    initiator: outbound ? peerId : channel.remotePeer,
    responder: outbound ? channel.remotePeer : peerId,
    messages,
  }
}

function verify(
  what: 'proof' | 'welcome',
  context: HandshakeContext,
  messages: readonly Uint8Array[],
  signature: Uint8Array,
  key: PublicKey,
): void {
  if (!verifyTranscript(what, transcript(context, messages), signature, key)) {
    throw new HermesError('HANDSHAKE_REFUSED', { message: `the signature of the ${what} does not hold` })
  }
}

/**
 * A refusal in the place of the welcome comes from an agent that was judged and admitted: when it says that another process
 * runs under this key, that is about us.
 */
function welcomeOf(body: Uint8Array): Welcome {
  try {
    return decodeWelcome(body)
  } catch (error) {
    if (!isHermesError(error) || error.code !== 'DUPLICATE_AGENT') throw error
    throw error.with({ details: { ...error.details, self: true } })
  }
}

/** A signed message as `signedMessage` built it, or a bare refusal. */
function split(message: Uint8Array): { body: Uint8Array; signature: Uint8Array } {
  if (isRefusal(message)) return { body: message, signature: new Uint8Array(0) }
  const at = message.length - SIGNATURE_LENGTH
  return { body: message.subarray(0, at), signature: message.subarray(at) }
}

function remoteOf(
  { channel }: HandshakeContext,
  hello: Hello,
  proof: Proof,
  { identity, meeting, offsetMs }: Met,
  contentTypes: readonly ContentType[],
  features: readonly string[],
): Remote {
  return {
    agentId: hello.agent_id,
    identity,
    meeting,
    key: identity.signer,
    peerId: channel.remotePeer,
    address: channel.remoteAddress,
    epoch: proof.epoch,
    nextSequence: proof.next_sequence,
    manifestDigest: proof.manifest_digest,
    revocations: proof.revocations,
    contentTypes,
    features,
    limits: hello.limits,
    offsetMs,
  }
}
