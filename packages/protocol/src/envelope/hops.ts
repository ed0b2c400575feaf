import { decodeCompact, encodeCompact } from '../bytes/compact-json.ts'
import { part } from '../bytes/parts.ts'
import { partInDomain } from '../crypto/domains.ts'
import type { PublicKey, SigningKey } from '../crypto/keys.ts'
import { sha256Hex } from '../crypto/sha256.ts'
import { HermesError } from '../errors/hermes-error.ts'
import { isAgentId } from '../names.ts'
import type { SignedHop } from './frame.ts'
import type { Header } from './header-types.ts'

/** One handing-on of an envelope, signed by who handed it on. */
export interface Hop {
  readonly forwarder: string
  readonly next: string
  readonly index: number
  readonly timestamp: number
  /** Budget left for `next`, ms. */
  readonly budget_ms: number
  /** The leaf for hop 0, else SHA-256 of the part of the hop before, hex. */
  readonly previous: string
}

/** The link by which the next hop refers to this one: SHA-256 of part(JSON), hex. */
export function hopLink(hop: SignedHop): string {
  return sha256Hex(part(hop.body))
}

export function signHop(hop: Hop, key: SigningKey): SignedHop {
  const { forwarder, next, index, timestamp, budget_ms, previous } = hop
  const body = encodeCompact({ forwarder, next, index, timestamp, budget_ms, previous })
  return { body, signature: key.sign(partInDomain('hop', body)) }
}

const KEYS = ['forwarder', 'next', 'index', 'timestamp', 'budget_ms', 'previous']

/** Throws `MALFORMED`. */
export function decodeHop(body: Uint8Array): Hop {
  const raw = decodeCompact(body, 'hop')
  const natural = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0
  const sound =
    Object.keys(raw).length === KEYS.length &&
    isAgentId(raw.forwarder) &&
    isAgentId(raw.next) &&
    natural(raw.index) &&
    natural(raw.timestamp) &&
    natural(raw.budget_ms) &&
    typeof raw.previous === 'string' &&
    /^[0-9a-f]{64}$/.test(raw.previous)
  if (!sound) throw new HermesError('MALFORMED', { message: 'a hop does not have its fields' })
  return raw as unknown as Hop
}

export interface HopsContext {
  readonly header: Header
  /** Leaf of the envelope. */
  readonly leaf: string
  readonly hops: readonly SignedHop[]
  /** The agent at the other end of the link that the frame came over. */
  readonly neighbour: string
  /** This agent. */
  readonly self: string
  /** The admitted key of an agent, undefined when it is not known; it may stand for several, of which one must have signed. */
  keyOf(agentId: string): Pick<PublicKey, 'verify'> | undefined
}

/**
 * Checks a chain of hops from the first addressee to this agent; returns the last hop (whose budget counts), undefined without hops.
 * Throws `TTL_EXPIRED` when there are more hops than `max_hops` allows, `MALFORMED`, or `BAD_HOPS` that says which hop and why.
 */
export function verifyHops({ header, leaf, hops, neighbour, self, keyOf }: HopsContext): Hop | undefined {
  if (hops.length === 0) return undefined
  if (hops.length > header.max_hops) {
    throw new HermesError('TTL_EXPIRED', { message: `${hops.length} hops taken, ${header.max_hops} allowed` })
  }
  const refuse = (index: number, why: string): never => {
    throw new HermesError('BAD_HOPS', { message: `hop ${index} ${why}`, details: { index } })
  }
  const seen = new Set<string>([header.sender.agent_id])
  let expected = firstAddressee(header) ?? refuse(0, 'belongs to a message that cannot be handed on')
  let previous = leaf
  let last: Hop | undefined
  for (const [index, signed] of hops.entries()) {
    const hop = decodeHop(signed.body)
    if (hop.index !== index) refuse(index, 'stands in the wrong place')
    if (hop.forwarder !== expected) refuse(index, 'was not made by the agent it was handed to')
    if (hop.previous !== previous) refuse(index, 'does not follow from the one before')
    if (seen.has(hop.forwarder)) refuse(index, 'passes an agent twice')
    seen.add(hop.forwarder)
    const key = keyOf(hop.forwarder) ?? refuse(index, 'was made by an agent whose key is not known')
    if (!key.verify(partInDomain('hop', signed.body), signed.signature)) refuse(index, 'is not signed by its forwarder')
    expected = hop.next
    previous = hopLink(signed)
    last = hop
  }
  if (seen.has(self)) refuse(hops.length - 1, 'leads back to an agent it has passed')
  if (last?.next !== self) refuse(hops.length - 1, 'was meant for another agent')
  if (last?.forwarder !== neighbour) refuse(hops.length - 1, 'came from another agent than its forwarder')
  return last
}

function firstAddressee({ recipient }: Header): string | undefined {
  if ('agent_id' in recipient) return recipient.agent_id
  return 'via' in recipient ? recipient.via : undefined
}
