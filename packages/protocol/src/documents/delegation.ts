import { fromBase64url, toBase64url } from '../bytes/parts.ts'
import { type Constraints, readConstraints, widening } from '../constraints/index.ts'
import type { PublicKey, SigningKey } from '../crypto/keys.ts'
import { MAX_LIFE_MS } from '../envelope/header-types.ts'
import { HermesError } from '../errors/hermes-error.ts'
import { LIMITS } from '../limits.ts'
import { isCapabilityName, isReservedName } from '../names.ts'
import { Fields } from './fields.ts'
import { type OpenedDocument, openDocument, type SignedDocument, signDocument, verifyDocument } from './signed.ts'

/**
 * One link of a delegation, signed by `from` under the domain `delegation`: `to` may use these capabilities with the authority of
 * whoever stands at the root, as far as the constraints hold of the input. As JSON:
 *
 * `{network, from, key, to, capabilities, constraints, issued_at, expires_at, parent?}`: `key` is the raw key of `from` in base64url,
 * `capabilities` 1 to 32 whole names, `constraints` as in a policy, times in ms, at most 24 h apart. `parent` is the link before
 * as the whole signed document in base64url, so that the last document is the chain, and its SHA-256 names all of it. A link is `from`
 * the agent that its parent is `to`, and says nothing wider: no other capability, each constraint of the parent kept or narrowed, no
 * later end. Unknown fields are refused: what a newer version restricts by them must not be passed over.
 */
export interface DelegationLink {
  readonly network: string
  readonly from: string
  /** Raw key of `from`, 32 bytes. */
  readonly key: Uint8Array
  /** The one agent that may present it, or hand it on. */
  readonly to: string
  readonly capabilities: readonly string[]
  readonly constraints: Constraints
  /** Wall clock, ms. */
  readonly issued_at: number
  readonly expires_at: number
}

/** Links of a chain. */
export const MAX_DELEGATION_LINKS = 5
const MOST_CAPABILITIES = 32
const KNOWN = ['network', 'from', 'key', 'to', 'capabilities', 'constraints', 'issued_at', 'expires_at', 'parent']

/** Signs one link, on top of `parent`. Whether it is narrower than that is judged by whoever opens it. */
export function signDelegation(link: DelegationLink, key: SigningKey, parent?: SignedDocument): SignedDocument {
  const above = parent === undefined ? {} : { parent: toBase64url(parent) }
  return signDocument('delegation', { ...link, key: toBase64url(link.key), ...above }, key)
}

export interface DelegationContext {
  readonly network: string
  /** Wall clock, ms; `aheadMs` and `lateMs`: how far clocks may be off at the beginning and at the end of a life. */
  readonly now: number
  readonly aheadMs: number
  readonly lateMs: number
  /** The key of an agent, if that raw key is admitted to speak for it. */
  keyOf(agentId: string, raw: Uint8Array): PublicKey | undefined
}

/**
 * Reads a chain and checks all of it; gives its links, the root first. Throws `MALFORMED`, `LIMIT_EXCEEDED`, `BAD_SIGNATURE`, `EXPIRED`,
 * `NOT_ALLOWED` for a key that does not speak for its agent, and `DELEGATION_REFUSED` for a link that is wider than its parent, or not from
 * whom that is for.
 */
export function openDelegation(bytes: Uint8Array, context: DelegationContext): readonly DelegationLink[] {
  const opened: { document: OpenedDocument; link: DelegationLink }[] = []
  for (let next: Uint8Array | undefined = bytes; next !== undefined; ) {
    if (opened.length === MAX_DELEGATION_LINKS) refuse(`has more than ${MAX_DELEGATION_LINKS} links`)
    const document: OpenedDocument = openDocument(next, LIMITS.delegation, 'delegation')
    const fields = new Fields(document.value, 'delegation')
    opened.unshift({ document, link: readLink(document.value, fields) })
    next = parentOf(fields)
  }
  for (const [index, { link }] of opened.entries()) {
    judgeLink(link, context)
    const parent = opened[index - 1]?.link
    if (parent) judgeNarrower(link, parent)
  }
  for (const { document, link } of opened) {
    const key = context.keyOf(link.from, link.key)
    if (!key)
      throw new HermesError('NOT_ALLOWED', { message: `delegation: its key does not speak for ${link.from} here` })
    verifyDocument('delegation', document, key)
  }
  return opened.map(({ link }) => link)
}

function readLink(value: unknown, fields: Fields): DelegationLink {
  const unknown = Object.keys(value as object).find((field) => !KNOWN.includes(field))
  if (unknown !== undefined) fields.refuse('a field', `is not known: ${JSON.stringify(unknown.slice(0, 64))}`)
  const capabilities = fields.texts('capabilities', MOST_CAPABILITIES, 80, delegable)
  if (capabilities.length === 0) fields.refuse('capabilities', 'names none')
  return {
    network: fields.network(),
    from: fields.agentId('from'),
    key: fields.key(),
    to: fields.agentId('to'),
    capabilities,
    constraints: readConstraints(fields.raw('constraints'), (path, why) =>
      fields.refuse(['constraints', ...path].join(' '), why),
    ),
    issued_at: fields.natural('issued_at'),
    expires_at: fields.natural('expires_at'),
  }
}

/** What the runtime itself offers has guards of its own, which nobody can lend. */
const delegable = (name: string): boolean => isCapabilityName(name) && !isReservedName(name)

function parentOf(fields: Fields): Uint8Array | undefined {
  if (!fields.has('parent')) return undefined
  const parent = fields.raw('parent')
  const bytes = typeof parent === 'string' ? fromBase64url(parent) : undefined
  return bytes ?? fields.refuse('parent', 'is not a document in base64url')
}

function judgeLink(link: DelegationLink, { network, now, aheadMs, lateMs }: DelegationContext): void {
  const { from, to, issued_at, expires_at } = link
  if (link.network !== network)
    throw new HermesError('WRONG_NETWORK', { message: 'the delegation is for another network' })
  if (from === to) refuse(`is from ${from} to itself`)
  if (expires_at <= issued_at || expires_at - issued_at > MAX_LIFE_MS) {
    refuse(`of ${from} lives longer than ${MAX_LIFE_MS} ms, or not at all`)
  }
  if (issued_at > now + aheadMs || expires_at < now - lateMs) {
    throw new HermesError('EXPIRED', {
      message: `the delegation of ${from} holds from ${issued_at} to ${expires_at}, now is ${now}`,
    })
  }
}

function judgeNarrower(link: DelegationLink, parent: DelegationLink): void {
  const { from } = link
  if (from !== parent.to) refuse(`was given to ${parent.to}, and handed on by ${from}`)
  if (link.expires_at > parent.expires_at) refuse(`of ${from} ends later than the one that it stands on`)
  const other = link.capabilities.find((name) => !parent.capabilities.includes(name))
  if (other !== undefined) refuse(`of ${from} names ${other}, which the one that it stands on does not`)
  const wider = widening(link.constraints, parent.constraints)
  if (wider)
    refuse(`of ${from} is wider than the one that it stands on: ${wider.field} of ${wider.pointer || 'the input'}`)
}

function refuse(why: string): never {
  throw new HermesError('DELEGATION_REFUSED', { message: `the delegation ${why}` })
}
