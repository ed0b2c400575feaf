import { checkName, FINGERPRINT, fromBase64url, HermesError, isHermesError, peerIdOf } from '@hermes-peer/protocol'
import { MOST_ADDRESSES } from './source.ts'

/** `parse` of the package yaml. */
export type ParseYaml = (text: string, options: { maxAliasCount: number; logLevel: 'error' }) => unknown

/** One agent as a file lists it. */
export interface ListedAgent {
  readonly agentId: string
  readonly peerId: string
  readonly addresses: readonly string[]
  readonly capabilities: readonly string[]
}

/** Agents that one file may list. */
const MOST_AGENTS = 10_000
/** Capabilities of one of them. */
const MOST_CAPABILITIES = 1000

const ADDRESS = /^\/(ip4|ip6|dns|dns4|dns6|memory)\/[^/\s]+(\/[^/\s]+)*$/
const PEER_ID = /^12D3KooW[1-9A-HJ-NP-Za-km-z]{44}$/

/**
 * Reads a list of agents, YAML or JSON: `agents: [{ agent_id, peer_id | key, addresses, capabilities }]`, `key` raw in base64url.
 * Throws `INVALID_OPTION` that names the entry.
 */
export function parseAgents(text: string, source: string, read: ParseYaml): ListedAgent[] {
  const refuse = (where: string, why: string, cause?: unknown): never => {
    throw new HermesError('INVALID_OPTION', {
      message: `${source}: ${where} ${why}`.trim(),
      hint: 'Write agents: [{ agent_id, peer_id or key, addresses, capabilities }], as YAML or JSON.',
      details: { field: 'directories' },
      ...(cause === undefined ? {} : { cause }),
    })
  }
  const agents = (parsed(text, read, refuse) as { agents?: unknown } | null)?.agents
  if (!Array.isArray(agents)) return refuse('agents', 'must be a list')
  if (agents.length > MOST_AGENTS) refuse('agents', `has over ${MOST_AGENTS} entries`)
  const seen = new Set<string>()
  return agents.map((entry: unknown, index) => {
    const where = `agents[${index}]`
    if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) refuse(where, 'is not an object')
    const { agent_id, peer_id, key, addresses, capabilities, ...rest } = entry as Record<string, unknown>
    const other = Object.keys(rest)[0]
    if (other !== undefined)
      refuse(`${where}.${other}`, 'is not known: agent_id, peer_id, key, addresses, capabilities are')
    const agentId = named('agent_id', agent_id, `${where}.agent_id`, refuse)
    if (seen.has(agentId)) refuse(`${where}.agent_id`, `repeats ${agentId}`)
    seen.add(agentId)
    return {
      agentId,
      peerId: peerIdIn(peer_id, key, where, refuse),
      addresses: texts(addresses, `${where}.addresses`, MOST_ADDRESSES, refuse).map((address, at) =>
        ADDRESS.test(address) ? address : refuse(`${where}.addresses[${at}]`, 'is not a multiaddr'),
      ),
      capabilities: texts(capabilities, `${where}.capabilities`, MOST_CAPABILITIES, refuse).map((name, at) =>
        named('capability', name, `${where}.capabilities[${at}]`, refuse),
      ),
    }
  })
}

type Refuse = (where: string, why: string, cause?: unknown) => never

function parsed(text: string, parse: ParseYaml, refuse: Refuse): unknown {
  try {
    // JSON is YAML too. Aliases are bounded: a few lines of them could else stand for gigabytes.
    return parse(text.replace(/^\uFEFF/, ''), { maxAliasCount: 100, logLevel: 'error' })
  } catch (error) {
    return refuse('', `is neither YAML nor JSON: ${(error as Error).message.split('\n')[0]}`, error)
  }
}

function named(kind: 'agent_id' | 'capability', value: unknown, where: string, refuse: Refuse): string {
  try {
    return checkName(kind, value, where)
  } catch (error) {
    return refuse('', isHermesError(error) ? error.message : `${where} is no name`, error)
  }
}

function texts(value: unknown, where: string, most: number, refuse: Refuse): string[] {
  if (!Array.isArray(value) || value.length === 0) return refuse(where, 'must be a list that is not empty')
  if (value.length > most) refuse(where, `has over ${most} entries`)
  return value.map((one, at) => (typeof one === 'string' ? one : refuse(`${where}[${at}]`, 'is not a text')))
}

function peerIdIn(peerId: unknown, key: unknown, where: string, refuse: Refuse): string {
  if (peerId === undefined && key === undefined) return refuse(where, 'needs "peer_id" or "key"')
  if (peerId !== undefined && (typeof peerId !== 'string' || !PEER_ID.test(peerId))) {
    return refuse(`${where}.peer_id`, 'is not the peer id of an Ed25519 key (12D3KooW…)')
  }
  if (key === undefined) return peerId as string
  if (typeof key === 'string' && FINGERPRINT.test(key))
    refuse(`${where}.key`, 'is a fingerprint: the key itself is needed')
  const raw = typeof key === 'string' ? fromBase64url(key) : undefined
  if (raw?.length !== 32) return refuse(`${where}.key`, 'is not a raw 32-byte key in base64url')
  const own = peerIdOf(raw)
  if (peerId !== undefined && peerId !== own) refuse(where, 'has a peer_id that is not that of its key')
  return own
}
