import { decodeHop, type Hop, hopLink, part, type SignedHop, type SigningKey, signHop } from '@hermes-peer/protocol'
import type { Actor } from './actors.ts'
import { varint } from './raw-stream.ts'

/** One handing-on, and what is wrong with it. */
export interface Step {
  by: Actor
  next: string
  /** Fields that say something else. */
  hop?: Partial<Hop>
  /** Signs in its place. */
  signer?: SigningKey
}

/** Each step signed over the one before. */
export function chain(leaf: string, steps: readonly Step[]): SignedHop[] {
  const hops: SignedHop[] = []
  for (const [index, { by, next, hop, signer }] of steps.entries()) {
    const before = hops.at(-1)
    const previous = before ? hopLink(before) : leaf
    const said = { forwarder: by.agentId, next, index, timestamp: Date.now(), budget_ms: 5000, previous }
    hops.push(signHop({ ...said, ...hop }, signer ?? by.key))
  }
  return hops
}

/** The hops section of a frame. */
export function hopsBytes(hops: readonly SignedHop[]): Uint8Array {
  return Buffer.concat([varint(hops.length), ...hops.flatMap(({ body, signature }) => [part(body), signature])])
}

export const readHop = ({ body }: SignedHop): Hop => decodeHop(body)
