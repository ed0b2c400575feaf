import { readFileSync, statSync } from 'node:fs'
import {
  checkName,
  FINGERPRINT,
  fingerprintOf,
  fromBase64url,
  HermesError,
  isHermesError,
  isName,
  publicKey,
} from '@hermes-peer/protocol'
import type { Membership } from './membership.ts'
import { ADMITTED, mismatch, notAllowed, type Trust } from './trust.ts'

/** One line of an allow list: the key in raw base64url, or its fingerprint. */
export interface AllowedAgent {
  agent_id: string
  key?: string
  fingerprint?: string
  /** What policy knows it by, as `team:<name>` and `role:<name>`. Default: of no team, in no role. */
  team?: string
  roles?: readonly string[]
}

/** What is on record of one agent. */
interface Listed {
  readonly fingerprint: string
  readonly membership: Membership
}

/**
 * Admits the agents of a JSON file `{"agents": [{"agent_id": "…", "key": "<base64url>"}]}` (or `"fingerprint": "sha256:…"`), each with
 * `"team"` and `"roles"` where policy is to know it by them.
 * Read again when the file changes, at most once a second; a broken file keeps the old list and is told to `report`.
 * Throws `INVALID_TRUST_FILE` that names the entry when the first reading fails.
 */
export function allowListFile(
  path: string,
  options: { monotonic: () => number; report: (text: string) => void },
): Trust {
  // Before it is read: what changes meanwhile is noticed the next time.
  let stamp = stampOf(path)
  let agents = parseAllowList(read(path), path)
  let looked = options.monotonic()
  const current = (): ReadonlyMap<string, Listed> => {
    if (options.monotonic() - looked < 1000) return agents
    looked = options.monotonic()
    const now = stampOf(path)
    if (now === stamp) return agents
    stamp = now
    try {
      agents = parseAllowList(read(path), path)
    } catch (error) {
      options.report(`trust.allow: the changed file is not used: ${(error as Error).message}`)
    }
    return agents
  }
  return allowing(current, `the agents listed in ${path}`)
}

/** Admits a fixed list. */
export function allowList(agents: readonly AllowedAgent[]): Trust {
  const map = parseAllowList({ agents }, 'trust.allow')
  return allowing(() => map, `${map.size} listed agents`)
}

function allowing(agents: () => ReadonlyMap<string, Listed>, description: string): Trust {
  return {
    judge({ agentId, fingerprint }) {
      const listed = agents().get(agentId)?.fingerprint
      if (!listed) return notAllowed(`${agentId} is not on the allow list`)
      return listed === fingerprint ? ADMITTED : mismatch(agentId, fingerprint, listed)
    },
    known: (agentId) => agents().get(agentId)?.fingerprint,
    membership: (agentId) => agents().get(agentId)?.membership,
    // A key that is not listed may be the next one of an agent that is: only its certificate tells, in the handshake.
    standing: (key) => ([...agents().values()].some((one) => one.fingerprint === key) ? 'admitted' : 'unknown'),
    describe: () => `admitted: ${description}`,
  }
}

/** By agent id. */
export function parseAllowList(value: unknown, source: string): ReadonlyMap<string, Listed> {
  const refuse = (where: string, why: string, cause?: unknown): never => {
    throw new HermesError('INVALID_TRUST_FILE', {
      message: `${source}: ${where} ${why}`,
      details: { field: where },
      ...(cause === undefined ? {} : { cause }),
    })
  }
  const list = (value as { agents?: unknown } | null)?.agents
  if (!Array.isArray(list)) refuse('agents', 'must be a list of {"agent_id", "key"}')
  const agents = new Map<string, Listed>()
  for (const [index, entry] of (list as unknown[]).entries()) {
    const where = `agents[${index}]`
    if (typeof entry !== 'object' || entry === null) refuse(where, 'is not an object')
    const { agent_id, key, fingerprint, team, roles } = entry as Partial<AllowedAgent>
    try {
      checkName('agent_id', agent_id, `${where}.agent_id`)
    } catch (error) {
      refuse(`${where}.agent_id`, isHermesError(error) ? error.message : 'is not an agent id', error)
    }
    if (agents.has(agent_id as string)) refuse(`${where}.agent_id`, `repeats ${agent_id}: one agent id has one key`)
    agents.set(agent_id as string, {
      fingerprint: fingerprintIn(key, fingerprint, where, refuse),
      membership: membershipIn(team, roles, where, refuse),
    })
  }
  return agents
}

type Refuse = (where: string, why: string, cause?: unknown) => never

/** Teams and roles that one agent may have. */
const MOST_ROLES = 32

function membershipIn(team: unknown, roles: unknown, where: string, refuse: Refuse): Membership {
  if (team !== undefined && !isName(team)) refuse(`${where}.team`, 'is not a name like "finance"')
  if (roles === undefined) return { ...(team === undefined ? {} : { team: team as string }), roles: [] }
  if (!Array.isArray(roles) || roles.length > MOST_ROLES || !roles.every(isName)) {
    refuse(`${where}.roles`, `is not a list of at most ${MOST_ROLES} names like "approver"`)
  }
  return { ...(team === undefined ? {} : { team: team as string }), roles: [...(roles as string[])] }
}

function fingerprintIn(
  key: string | undefined,
  fingerprint: string | undefined,
  where: string,
  refuse: Refuse,
): string {
  if (key === undefined && fingerprint === undefined) refuse(where, 'needs "key" or "fingerprint"')
  if (fingerprint !== undefined && (typeof fingerprint !== 'string' || !FINGERPRINT.test(fingerprint))) {
    refuse(`${where}.fingerprint`, 'is not of the form sha256:<64 hex digits>')
  }
  if (key === undefined) return fingerprint as string
  const raw = typeof key === 'string' ? fromBase64url(key) : undefined
  if (raw?.length !== 32) refuse(`${where}.key`, 'is not a raw 32-byte key in base64url')
  try {
    publicKey(raw as Uint8Array)
  } catch (error) {
    refuse(`${where}.key`, (error as Error).message, error)
  }
  const own = fingerprintOf(raw as Uint8Array)
  if (fingerprint !== undefined && fingerprint !== own) refuse(where, 'has a fingerprint that is not that of its key')
  return own
}

function read(path: string): unknown {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    throw new HermesError('INVALID_TRUST_FILE', {
      message: `trust.allow: cannot read ${path}`,
      details: { field: 'trust.allow' },
      cause,
    })
  }
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ''))
  } catch (cause) {
    throw new HermesError('INVALID_TRUST_FILE', {
      message: `trust.allow: ${path} is not JSON: ${(cause as Error).message}`,
      details: { field: 'trust.allow' },
      cause,
    })
  }
}

/** Another text whenever the file may have changed, or can no longer be looked at. */
function stampOf(path: string): string {
  try {
    const stat = statSync(path)
    return `${stat.mtimeMs} ${stat.size} ${stat.ino}`
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'gone'
  }
}
