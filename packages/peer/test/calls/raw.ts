import { randomBytes } from 'node:crypto'
import {
  decodeFrame,
  decodeHeader,
  decodePayload,
  encodePayload,
  type Header,
  HermesError,
  type JsonValue,
  leafOf,
  manifestDigest,
  newMessageId,
  newSpanId,
  newTraceId,
  publicKey,
  signManifest,
  toBase64url,
} from '@hermes-peer/protocol'
import { onTestFinished } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { DEFAULTS } from '../../src/defaults.ts'
import { createOutbox, type Draft, type Outbox } from '../../src/delivery/outbox.ts'
import { createIdentities } from '../../src/identity/identities.ts'
import { ownInstance } from '../../src/identity/own-instance.ts'
import type { Link } from '../../src/link/link.ts'
import { createLinks } from '../../src/link/links.ts'
import { createLibp2pNetwork } from '../../src/network/libp2p/index.ts'
import { systemRandom } from '../../src/random.ts'
import { createTelemetry } from '../../src/telemetry/telemetry.ts'
import { keyNamed } from '../identity/support.ts'
import { capabilityEntry, type Offered } from '../routing/support.ts'
import { until } from '../waiting.ts'

/** An envelope as it came, with its payload parsed. */
export interface Got {
  readonly header: Header
  readonly payload: Record<string, JsonValue>
  readonly leaf: string
  readonly link: Link
}

/**
 * A peer that makes each envelope by hand: its handshakes and signatures are real, and over real libp2p, but nothing above them
 * is: no window, no deduplication, no routing. It says what the test says.
 */
export interface RawPeer {
  readonly agentId: string
  readonly address: string
  /** All that came but heartbeats, oldest first. */
  readonly got: readonly Got[]
  /** Opens a link of its own each time. */
  link(address: string): Promise<Link>
  /** Sends an envelope, returns the leaf that its answer will name. */
  send(link: Link, draft: RawDraft): string
  /** Resolves with the answer to a leaf. */
  answer(leaf: string): Promise<Got>
  /** Answers a request; `message_type` response or error. */
  reply(to: Got, type: 'response' | 'error', payload: object): void
  links(agentId: string): readonly Link[]
  stop(): Promise<void>
}

export interface RawDraft extends Partial<Omit<Draft, 'payload'>> {
  payload: object
}

export interface RawOptions {
  /** Capabilities in its manifest. */
  offers?: readonly Offered[]
  /** Called for each request but `hermes.manifest`, which is answered. */
  onRequest?: (got: Got, raw: RawPeer) => void
}

const bytes = (length: number) => new Uint8Array(randomBytes(length))

/** A raw peer that is stopped when the test ends. */
export async function rawPeer(agentId: string, options: RawOptions = {}): Promise<RawPeer> {
  const raw = await startRaw(agentId, options)
  onTestFinished(() => raw.stop())
  return raw
}

/** A raw peer that whoever starts it stops. */
export async function startRaw(agentId: string, options: RawOptions = {}): Promise<RawPeer> {
  const key = keyNamed(agentId)
  const clock = systemClock()
  const random = systemRandom()
  const telemetry = createTelemetry({ clock })
  const network = createLibp2pNetwork({ privateKey: key.seed, networkName: 'default' })
  const now = clock.now()
  const manifest = signManifest(
    {
      agent_id: agentId,
      key: key.publicKey.raw,
      network: 'default',
      serial: now,
      issued_at: now,
      expires_at: now + DEFAULTS.manifestLifeMs,
      description: '',
      capabilities: (options.offers ?? []).map(capabilityEntry),
    },
    key,
  )
  const own = ownInstance(key, key.publicKey, [])
  const got: Got[] = []
  let outbox: Outbox
  const links = createLinks({
    network,
    own: () => own,
    identities: createIdentities({
      network: 'default',
      trust: { judge: () => ({ admitted: true }), known: () => undefined, describe: () => 'everyone' },
      keys: publicKey,
      clock,
      tunables: DEFAULTS,
    }),
    clock,
    random,
    tunables: DEFAULTS,
    telemetry,
    perAddress: false,
    self: {
      agentId,
      key: key.publicKey,
      network: 'default',
      epoch: now,
      limits: { max_envelope_bytes: 1024 * 1024, max_in_flight: 256 },
      manifestDigest: () => manifestDigest(manifest),
      nextSequence: (other) => outbox.nextSequence(other),
      seenEpoch: () => 0,
    },
    events: {
      up: () => undefined,
      frame: (link, body) => receive(link, body),
      unblocked: (link) => outbox.unblocked(link),
      down: () => undefined,
      retired: () => undefined,
      accused: () => undefined,
    },
  })
  outbox = createOutbox({
    agentId,
    network: 'default',
    epoch: now,
    key: () => key,
    links,
    clock,
    random,
    tunables: DEFAULTS,
    telemetry,
    maxEnvelopeBytes: 1024 * 1024,
  })

  const receive = (link: Link, body: Uint8Array): void => {
    const frame = decodeFrame(body)
    if (frame.tag !== 0) throw new HermesError('UNKNOWN_TAG')
    const header = decodeHeader(frame.header)
    const payload = decodePayload(header.content_type, frame.payload) as Record<string, JsonValue>
    if (header.message_type === 'heartbeat') {
      link.receipt(payload.received as number)
      if (payload.reply === true) outbox.heartbeat(link, false)
      return
    }
    // The leaf is what an answer will name; sealing told it to the sender, hashing tells it to us.
    const one: Got = { header, payload, leaf: leafOf(frame.header), link }
    got.push(one)
    if (header.message_type !== 'request') return
    if (header.target_capability === 'hermes.manifest') {
      raw.reply(one, 'response', { output: { manifest: toBase64url(manifest) }, status: 'completed' })
    } else options.onRequest?.(one, raw)
  }

  const raw: RawPeer = {
    agentId,
    got,
    get address() {
      return network.addresses()[0] as string
    },
    async link(address) {
      const [, peerId] = address.split('/p2p/')
      const channel = [...links.all()].filter(({ remote }) => remote.peerId === peerId)
      const opened = await links.connect({ addresses: [address], chosen: true })
      // The two-links rule may keep the older one for new envelopes; a test that asks for a link means the new one.
      const fresh = [...links.all()].find(
        (link) => link.remote.peerId === opened.remote.peerId && !channel.includes(link),
      )
      return fresh ?? opened
    },
    send(link, { payload, ...draft }) {
      return outbox.write(link, {
        type: 'request',
        messageId: newMessageId(bytes),
        traceId: newTraceId(bytes),
        spanId: newSpanId(bytes),
        timeoutMs: 10_000,
        ...draft,
        payload: encodePayload('application/json', payload as never),
      }).leaf
    },
    async answer(leaf) {
      const find = () => got.find(({ header }) => header.in_reply_to === leaf)
      await until(() => find() !== undefined, `an answer to ${leaf.slice(0, 8)}`)
      return find() as Got
    },
    reply(to, type, payload) {
      raw.send(to.link, {
        type,
        messageId: to.header.message_id,
        correlationId: to.header.correlation_id,
        traceId: to.header.trace_id,
        inReplyTo: to.leaf,
        payload,
      })
    },
    links: (other) => [...links.all()].filter(({ remote }) => remote.agentId === other),
    async stop() {
      links.stop(new HermesError('STOPPED'))
      await network.stop()
    },
  }
  links.start()
  await network.start()
  return raw
}
