import {
  decodeFrame,
  decodeHeader,
  decodeHop,
  decodePayload,
  type EnvelopeParts,
  type Frame,
  type Header,
  HermesError,
  isAnswer,
  isHermesError,
  leafOf,
  MAX_FRAME,
  type PublicKey,
  Reader,
  verifyBatch,
  verifyEnvelope,
  verifyHops,
  verifyPayload,
} from '@hermes-peer/protocol'

export type Outcome = { accepted: true; views: object[] } | { accepted: false; code: string }

export interface Way {
  self: string
  neighbour: string
  keyOf(agent: string): PublicKey | undefined
}

/** What the implementation says of a frame, in the order of the wire text; steps can be replaced to plant a fault. */
export interface Steps {
  decodeHeader: typeof decodeHeader
  verifyHops: typeof verifyHops
  verifyEnvelope: typeof verifyEnvelope
  verifyPayload: typeof verifyPayload
  decodePayload: typeof decodePayload
}

export const STEPS: Steps = { decodeHeader, verifyHops, verifyEnvelope, verifyPayload, decodePayload }

export function implementation(bytes: Uint8Array, way: Way, steps: Steps = STEPS): Outcome {
  try {
    const reader = new Reader(bytes)
    const body = reader.part(MAX_FRAME, 'the frame')
    reader.end('the frame')
    return { accepted: true, views: viewsOf(decodeFrame(body), way, steps) }
  } catch (error) {
    if (isHermesError(error)) return { accepted: false, code: error.code }
    throw error
  }
}

function viewsOf(frame: Frame, way: Way, steps: Steps): object[] {
  if (frame.tag === 2) return batchViews(frame.envelopes, frame.signature, way, steps)
  const header = steps.decodeHeader(frame.header)
  const leaf = steps.verifyEnvelope(frame, keyOfSender(header, frame.hops.length > 0, way))
  steps.verifyPayload(header, frame)
  steps.verifyHops({ header, leaf, hops: frame.hops, ...way })
  const hops = frame.hops.map(({ body }) => decodeHop(body))
  return [viewOf(header, frame, leaf, hops, steps)]
}

function batchViews(envelopes: readonly EnvelopeParts[], signature: Uint8Array, way: Way, steps: Steps): object[] {
  const headers = envelopes.map(({ header }) => steps.decodeHeader(header))
  const leaves = envelopes.map(({ header }) => leafOf(header))
  const keys = headers.map((header) => keyOfSender(header, false, way))
  const [key] = keys as [PublicKey]
  if (keys.some((other) => other !== key)) throw new HermesError('WRONG_SENDER')
  const raw = leaves.map((leaf) => Buffer.from(leaf, 'hex'))
  if (!verifyBatch(raw, signature, key)) throw new HermesError('BAD_SIGNATURE')
  for (const [index, header] of headers.entries()) steps.verifyPayload(header, envelopes[index] as EnvelopeParts)
  return headers.map((header, index) =>
    viewOf(header, envelopes[index] as EnvelopeParts, leaves[index] as string, [], steps),
  )
}

function keyOfSender(header: Header, forwarded: boolean, { neighbour, keyOf }: Way): PublicKey {
  const { agent_id, key: fingerprint } = header.sender
  if (!forwarded && !isAnswer(header.message_type) && agent_id !== neighbour) throw new HermesError('WRONG_SENDER')
  const key = keyOf(agent_id)
  if (key?.fingerprint !== fingerprint) throw new HermesError('WRONG_SENDER')
  return key
}

function viewOf(header: Header, { payload }: EnvelopeParts, leaf: string, hops: object[], steps: Steps): object {
  const known = Object.fromEntries(Object.entries(header).filter(([, value]) => value !== undefined))
  return { header: known, payload: steps.decodePayload(header.content_type, payload), leaf, hops }
}
