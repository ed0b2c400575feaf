import { domain, hex, join, partOf } from './bytes.ts'
import { parseCompact } from './compact.ts'
import { sha256, type VerifyingKey } from './ed25519.ts'
import type { RawHop } from './frame.ts'
import type { Header } from './header.ts'
import type { JsonMap } from './json.ts'
import { isAgentId, isHash } from './names.ts'
import { Refused } from './refused.ts'

const FIELDS = ['forwarder', 'next', 'index', 'timestamp', 'budget_ms', 'previous']

export interface Arrival {
  /** The agent that judges. */
  self: string
  /** The agent at the other end of the link; none where it came by gossip. */
  neighbour: string | undefined
  keyOf(agent: string): VerifyingKey | undefined
}

const no = (why: string): never => {
  throw new Refused('hops', why)
}

const bad = (why: string): never => {
  throw new Refused('hop', why)
}

/** The hops in the order in which they were made, or a refusal. */
export function readHops(raw: RawHop[], header: Header, leaf: Uint8Array, arrival: Arrival): JsonMap[] {
  const hops = raw.map((hop) => readHop(hop.json))
  const [first] = hops
  const last = hops.at(-1)
  if (first === undefined || last === undefined) return hops
  if (hops.length > (header.max_hops as number)) throw new Refused('ttl', 'more hops than allowed')
  const { agent_id: direct, via } = header.recipient as JsonMap
  if (first.forwarder !== (direct ?? via)) no('the first forwarder was not addressed')
  if (last.forwarder !== arrival.neighbour) no('the last forwarder is not the neighbour')
  if (last.next !== arrival.self) no('the last hop leads to another agent')
  const { agent_id: originator } = header.sender as JsonMap
  const agents = [originator, ...hops.map((hop) => hop.forwarder), last.next]
  if (new Set(agents).size !== agents.length) no('an agent stands twice')
  let previous = hex(leaf)
  for (const [index, hop] of hops.entries()) {
    const { json, signature } = raw[index] as RawHop
    if (hop.index !== index) no('an index out of place')
    if (index > 0 && hops[index - 1]?.next !== hop.forwarder) no('a hop that was not led to')
    if (hop.previous !== previous) no('a hop that follows something else')
    const key = arrival.keyOf(hop.forwarder as string)
    if (!key?.verifies(join(domain('hop'), partOf(json)), signature)) no('a hop not signed by its forwarder')
    previous = hex(sha256(partOf(json)))
  }
  return hops
}

function readHop(json: Uint8Array): JsonMap {
  const hop = parseCompact(json, 'hop')
  const whole = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0
  if (Object.keys(hop).length !== FIELDS.length || !FIELDS.every((field) => Object.hasOwn(hop, field)))
    bad('other fields')
  if (!isAgentId(hop.forwarder) || !isAgentId(hop.next) || !isHash(hop.previous)) bad('a field of another kind')
  if (!whole(hop.index) || !whole(hop.timestamp) || !whole(hop.budget_ms)) bad('a number out of range')
  return hop
}
