import { createHash, randomBytes } from 'node:crypto'
import {
  type CapabilityEntry,
  decodeFrame,
  decodeHeader,
  decodePayload,
  type Header,
  leafOf,
  manifestDigest,
  type SignedDocument,
  type SingleFrame,
  signManifest,
  toBase64url,
} from '@hermes-peer/protocol'
import type { Actor } from './actors.ts'
import { type Crafted, craft, type Draft } from './craft.ts'
import { eventually } from './eventually.ts'
import { CHOSEN, handHandshake, helloOf, type Json, proofOf } from './raw-handshake.ts'
import type { RawPeer } from './raw-peer.ts'
import type { RawStream } from './raw-stream.ts'

/** An envelope that the other side has sent. */
export interface Heard {
  readonly header: Header
  readonly payload: Json
  readonly leaf: string
  /** Header and payload together, bytes. */
  readonly size: number
  /** As it came. */
  readonly frame: SingleFrame
}

/** A link made by hand. It answers `hermes.manifest` and probes by itself; all else is kept for the test. */
export interface RawLink {
  readonly stream: RawStream
  readonly self: Actor
  /** Agent id and life of the other side. */
  readonly to: string
  readonly toEpoch: number
  readonly epoch: number
  /** The sequence that the next envelope will have. */
  sequence: number
  /** Makes an envelope in the name of this side, with anything in it replaced; it is not sent. */
  craft(draft: Draft): Crafted
  /** Makes and sends one. */
  send(draft: Draft): Crafted
  request(capability: string, input: unknown, more?: Draft): Crafted
  /** Answers an envelope. */
  answer(heard: Heard, output: unknown, more?: Draft): Crafted
  /** Whose manifests it was asked for. */
  readonly asked: string[]
  /** All that has come and was not taken by `next`. */
  readonly heard: readonly Heard[]
  /** The next envelope of that kind, which is taken out. */
  next(match?: (heard: Heard) => boolean, ms?: number): Promise<Heard>
  /** The next answer to an envelope. */
  answerTo(crafted: Crafted, ms?: number): Promise<Heard>
  readonly ended: boolean
  untilEnded(ms?: number): Promise<void>
  reset(): void
}

export interface LinkPlan {
  epoch?: number
  nextSequence?: number
  network?: string
  hello?: Json
  proof?: Json
  /** What it says it can do, in a manifest signed by its key. */
  capabilities?: readonly CapabilityEntry[]
  /** The document that is given as the manifest, whatever it is. */
  manifest?: Uint8Array
  /** What it shows as the manifests of others, by agent id; of those who are missing it has none. */
  others?: Readonly<Record<string, Uint8Array>>
  /** Answers nothing by itself, not even probes. */
  silent?: boolean
}

/** A capability as a manifest lists it. */
export function capabilityEntry(name: string, more: Partial<CapabilityEntry> = {}): CapabilityEntry {
  return {
    name,
    description: `does ${name}`,
    call_type: 'request',
    effects: 'none',
    input_schema: {},
    output_schema: {},
    errors: {},
    labels: {},
    constraints: {},
    negative_capabilities: [],
    ...more,
  }
}

export function manifestOf(
  self: Actor,
  capabilities: readonly CapabilityEntry[] = [],
  network = 'default',
): SignedDocument {
  const now = Date.now()
  return signManifest(
    {
      agent_id: self.agentId,
      key: self.key.publicKey.raw,
      network,
      serial: now,
      issued_at: now,
      expires_at: now + 3_600_000,
      description: '',
      capabilities,
    },
    self.key,
  )
}

/** Dials and shakes hands as the initiator. Rejects with `Refused` when it is refused. */
export async function dialLink(raw: RawPeer, self: Actor, address: string, plan: LinkPlan = {}): Promise<RawLink> {
  const stream = await raw.open(address)
  const responder = address.slice(address.lastIndexOf('/') + 1)
  const hand = handHandshake(stream, self, { initiator: raw.peerId, responder, ...named(plan) })
  const manifest = plan.manifest ?? manifestOf(self, plan.capabilities, plan.network)
  const epoch = plan.epoch ?? Date.now()
  hand.send(helloOf(self, { ...named(plan), ...plan.hello }))
  const challenge = await hand.read()
  hand.sendSigned('proof', ownProof(plan, epoch, manifest))
  const { body } = await hand.readSigned()
  return linkOver(stream, self, {
    to: challenge.agent_id as string,
    toEpoch: body.epoch as number,
    epoch,
    plan,
    manifest,
  })
}

/** Waits for the other side to open a stream, and shakes hands as the responder. */
export async function acceptLink(raw: RawPeer, self: Actor, plan: LinkPlan = {}): Promise<RawLink> {
  const stream = await raw.accept()
  return answerHandshake(raw, stream, self, plan)
}

/** Shakes hands as the responder on a stream that is there. */
export async function answerHandshake(
  raw: RawPeer,
  stream: RawStream,
  self: Actor,
  plan: LinkPlan = {},
): Promise<RawLink> {
  const initiator = raw.connections.find(({ streams }) => streams.includes(stream.stream))?.remotePeer.toString() ?? ''
  const hand = handHandshake(stream, self, { initiator, responder: raw.peerId, ...named(plan) })
  const manifest = plan.manifest ?? manifestOf(self, plan.capabilities, plan.network)
  const epoch = plan.epoch ?? Date.now()
  const hello = await hand.read()
  hand.send({ ...helloOf(self, { ...named(plan), ...plan.hello }), chosen: CHOSEN, ...pick(plan.hello, 'chosen') })
  const { body } = await hand.readSigned()
  hand.sendSigned('welcome', { ...ownProof(plan, epoch, manifest), link_id: randomBytes(8).toString('hex') })
  return linkOver(stream, self, { to: hello.agent_id as string, toEpoch: body.epoch as number, epoch, plan, manifest })
}

const named = ({ network }: LinkPlan) => (network === undefined ? {} : { network })
const pick = (from: Json | undefined, key: string): Json => (from && key in from ? { [key]: from[key] } : {})

function ownProof(plan: LinkPlan, epoch: number, manifest: Uint8Array): Json {
  return proofOf({
    epoch,
    next_sequence: plan.nextSequence ?? 1,
    manifest_digest: manifest.length > 0 ? manifestDigest(manifest) : createHash('sha256').digest('hex'),
    ...plan.proof,
  })
}

interface Agreed {
  to: string
  toEpoch: number
  epoch: number
  plan: LinkPlan
  manifest: Uint8Array
}

function linkOver(stream: RawStream, self: Actor, { to, toEpoch, epoch, plan, manifest }: Agreed): RawLink {
  const heard: Heard[] = []
  let received = 0
  const link: RawLink = {
    stream,
    self,
    to,
    toEpoch,
    epoch,
    sequence: plan.nextSequence ?? 1,
    craft: (draft) => craft(link, draft),
    send(draft) {
      const crafted = craft(link, draft)
      stream.send(crafted.frame)
      return crafted
    },
    request: (capability, input, more = {}) =>
      link.send({ message_type: 'request', target_capability: capability, payload: { input }, ...more }),
    answer: ({ header, leaf }, output, more = {}) =>
      link.send({
        message_type: 'response',
        message_id: header.message_id,
        correlation_id: header.correlation_id,
        trace_id: header.trace_id,
        in_reply_to: leaf,
        payload: { output, status: 'completed' },
        ...more,
      }),
    asked: [],
    heard,
    async next(match = () => true, ms) {
      const index = await eventually(() => heard.findIndex(match) + 1, 'an envelope from the other side', ms)
      return heard.splice(index - 1, 1)[0] as Heard
    },
    answerTo: ({ leaf }, ms) => link.next(({ header }) => header.in_reply_to === leaf, ms),
    get ended() {
      return stream.ended
    },
    untilEnded: (ms) => stream.untilEnded(ms),
    reset: () => stream.reset(),
  }

  const byItself = (one: Heard): boolean => {
    if (plan.silent === true) return false
    if (one.header.message_type === 'heartbeat') {
      if (one.payload.reply === true) {
        link.send({ message_type: 'heartbeat', payload: { time: Date.now(), reply: false, received } })
      }
      return true
    }
    if (one.header.target_capability !== 'hermes.manifest') return false
    const of = (one.payload.input as Json | null)?.agent_id as string | undefined
    link.asked.push(of ?? self.agentId)
    const shown = of === undefined ? manifest : plan.others?.[of]
    link.answer(one, { manifest: shown && toBase64url(shown) })
    return true
  }

  const listen = async () => {
    for (;;) {
      const frame = decodeFrame(await stream.part())
      received++
      if (frame.tag !== 0) throw new Error(`a frame of tag ${frame.tag}`)
      const header = decodeHeader(frame.header)
      const payload = decodePayload(header.content_type, frame.payload) as Json
      const one = {
        header,
        payload,
        leaf: leafOf(frame.header),
        size: frame.header.length + frame.payload.length,
        frame,
      }
      if (!byItself(one)) heard.push(one)
    }
  }
  // Ends with the stream.
  listen().catch(() => undefined)
  return link
}
