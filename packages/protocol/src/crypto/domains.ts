import { concat, part, utf8 } from '../bytes/parts.ts'

/** What a signature is for. Each has a domain string of its own, so that one can never pass for another. */
export const SIGNED_THINGS = [
  'envelope',
  'batch',
  'transcript',
  'proof',
  'welcome',
  'hop',
  'manifest',
  'presence',
  'certificate',
  'revocation',
  'endorsement',
  'delegation',
  'flight',
] as const

export type SignedThing = (typeof SIGNED_THINGS)[number]

/** `hermes-peer/<what>/1` */
export function domainOf(what: SignedThing): Uint8Array {
  return utf8(`hermes-peer/${what}/1`)
}

const ZERO = new Uint8Array(1)
const prefixes = Object.fromEntries(SIGNED_THINGS.map((what) => [what, concat([domainOf(what), ZERO])])) as Record<
  SignedThing,
  Uint8Array
>

/** domain ‖ 0x00 ‖ bytes */
export function inDomain(what: SignedThing, bytes: Uint8Array): Uint8Array {
  const prefix = prefixes[what]
  const out = new Uint8Array(prefix.length + bytes.length)
  out.set(prefix)
  out.set(bytes, prefix.length)
  return out
}

/** domain ‖ 0x00 ‖ part(bytes): what is signed of an envelope's header and of a document. */
export function partInDomain(what: SignedThing, bytes: Uint8Array): Uint8Array {
  return inDomain(what, part(bytes))
}
