import {
  type Constraint,
  type Constraints,
  checkName,
  type DelegationLink,
  fromBase64url,
  HermesError,
  intersection,
  isReservedName,
  judgeConstraints,
  MAX_LIFE_MS,
  openDelegation,
  type PublicKey,
  placed,
  readConstraints,
  type SigningKey,
  sha256Hex,
  signDelegation,
  toBase64url,
} from '@hermes-peer/protocol'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../clock.ts'

/** Authority that one agent has lent another, as far as it says; made by `delegate`, and taken by the option `delegation` of a call. */
export interface Delegation {
  /** Whose authority it is. */
  readonly from: string
  /** The only agent that may use it, or pass it on. */
  readonly to: string
  readonly capabilities: readonly string[]
  /** Every link's; all hold. */
  readonly constraints: Constraints
  /** Wall clock, ms. */
  readonly expiresAt: number
  /** The signed chain in base64url. */
  readonly document: string
}

export interface DelegateOptions {
  /** Who may act with it. */
  to: string
  /** Whole names, at most 32. Passing on: left out, all that was lent. */
  capabilities?: readonly string[]
  /** What the input must be, by JSON pointer; beside what is asked for already where it is passed on. */
  constraints?: Readonly<Record<string, Constraint>>
  /** Ms. Default one hour, at most 24 h, and never longer than what it stands on. */
  ttlMs?: number
}

/** What came with a call, verified. */
export type Lent =
  /** The caller acts with the authority of `from`. */
  | { readonly how: 'presented'; readonly links: readonly DelegationLink[] }
  /** The caller acts in its own name, and lends this agent what it says. */
  | { readonly how: 'handed'; readonly delegation: Delegation }

export interface Delegations {
  /** Verifies what came with a call of `from`, at a time. Throws `DELEGATION_REFUSED`. */
  open(from: string, hash: string, context: unknown, now?: number): Lent
  /** Makes one; on top of `parent` where one is passed on. Throws `INVALID_OPTION`, `INVALID_NAME`. */
  make(options: DelegateOptions, parent?: Delegation): Delegation
}

export interface DelegationsOptions {
  readonly agentId: string
  readonly network: string
  readonly key: SigningKey
  readonly clock: Clock
  readonly tunables: { readonly clockToleranceMs: number; readonly maxClockOffsetMs: number }
  /** The key of an agent, if that raw key is admitted here to speak for it. */
  keyOf(agentId: string, raw: Uint8Array): PublicKey | undefined
}

/** Chains that have been verified: one may come with each call of a thousand. */
const MOST_REMEMBERED = 256
const DEFAULT_TTL_MS = 3_600_000

export function createDelegations({ agentId, network, key, clock, tunables, keyOf }: DelegationsOptions): Delegations {
  /** By hash, with the time at which they were verified. A key that is not admitted any more, or an end, is noticed all the same. */
  const remembered = new LRUCache<string, readonly DelegationLink[]>({
    maxSize: MOST_REMEMBERED,
    sizeCalculation: () => 1,
  })

  const verified = (bytes: Uint8Array, hash: string, now: number): readonly DelegationLink[] => {
    const known = remembered.get(hash)
    const admitted = known?.every(({ from, key: raw }) => keyOf(from, raw) !== undefined)
    const { clockToleranceMs: lateMs, maxClockOffsetMs: aheadMs } = tunables
    const holds = known?.every(({ issued_at, expires_at }) => issued_at <= now + aheadMs && expires_at >= now - lateMs)
    if (known && admitted && holds) return known
    const links = openDelegation(bytes, { network, now, aheadMs, lateMs, keyOf })
    remembered.set(hash, links)
    return links
  }

  return {
    open(from, hash, context, now = clock.now()) {
      const text = (context as { delegation?: unknown } | undefined)?.delegation
      const bytes = typeof text === 'string' ? fromBase64url(text) : undefined
      if (!bytes) return refuse('the header names a delegation, and context.delegation holds none')
      if (sha256Hex(bytes) !== hash) return refuse('it is not the one that the header names')
      let links: readonly DelegationLink[]
      try {
        links = verified(bytes, hash, now)
      } catch (cause) {
        return refuse(HermesError.from(cause).message, cause)
      }
      const last = links.at(-1) as DelegationLink
      if (last.to === from) return { how: 'presented', links }
      if (last.to === agentId && last.from === from) {
        return { how: 'handed', delegation: shown(links, text as string) }
      }
      return refuse(`it was given to another agent than ${from}`)
    },
    make(options, parent) {
      const { to, capabilities, constraints = {}, ttlMs = DEFAULT_TTL_MS } = checkGrant(options)
      const now = clock.now()
      if (to === agentId) invalid('to', 'is this agent itself')
      const both = intersection(parent?.constraints ?? {}, constraints)
      if ('nothingAt' in both && typeof both.nothingAt === 'string') {
        return invalid('constraints', `leaves nothing at ${both.nothingAt || 'the input'} beside what was lent`)
      }
      const names = capabilities ?? parent?.capabilities ?? invalid('capabilities', 'is missing: name what is lent')
      const more = parent && names.find((name) => !parent.capabilities.includes(name))
      if (more !== undefined) invalid('capabilities', `names ${more}, which was not lent to this agent`)
      if (parent && parent.expiresAt <= now) invalid('delegation', 'has expired')
      const link: DelegationLink = {
        network,
        from: agentId,
        key: key.publicKey.raw,
        to,
        capabilities: names,
        constraints: both as Constraints,
        issued_at: now,
        expires_at: Math.min(now + Math.floor(ttlMs), parent?.expiresAt ?? Number.POSITIVE_INFINITY),
      }
      const below = parent === undefined ? undefined : (fromBase64url(parent.document) as Uint8Array)
      const document = signDelegation(link, key, below)
      return {
        from: parent?.from ?? agentId,
        to,
        capabilities: names,
        constraints: link.constraints,
        expiresAt: link.expires_at,
        document: toBase64url(document),
      }
    },
  }
}

function shown(links: readonly DelegationLink[], document: string): Delegation {
  const [root, last] = [links[0], links.at(-1)] as [DelegationLink, DelegationLink]
  const { to, capabilities, constraints, expires_at: expiresAt } = last
  return Object.freeze({ from: root.from, to, capabilities, constraints, expiresAt, document })
}

/** Whether every link covers that. */
export const covers = (links: readonly DelegationLink[], capability: string): boolean =>
  links.every(({ capabilities }) => capabilities.includes(capability))

/** Whether the constraints of every link hold. */
export const holdsFor = (links: readonly DelegationLink[], input: unknown): boolean =>
  links.every(({ constraints }) => judgeConstraints(placed(constraints), input) === 'yes')

function checkGrant(options: DelegateOptions): DelegateOptions {
  if (typeof options !== 'object' || options === null) invalid('options', 'must be an object with to and capabilities')
  const { to, capabilities, constraints, ttlMs, ...rest } = options
  const other = Object.keys(rest)[0]
  if (other !== undefined) invalid(other, 'is not an option; known are to, capabilities, constraints, ttlMs')
  checkName('agent_id', to, 'to')
  if (capabilities !== undefined) {
    if (!Array.isArray(capabilities) || capabilities.length === 0 || capabilities.length > 32) {
      invalid('capabilities', 'must be a list of 1 to 32 names')
    }
    for (const name of capabilities) {
      checkName('capability', name, 'capabilities')
      if (isReservedName(name)) invalid('capabilities', `names ${name}, which nobody can lend`)
    }
  }
  if (constraints !== undefined) {
    readConstraints(constraints, (path, why) => invalid(['constraints', ...path].join(' '), why))
  }
  if (ttlMs !== undefined && !(typeof ttlMs === 'number' && ttlMs >= 1 && ttlMs <= MAX_LIFE_MS)) {
    invalid('ttlMs', `must be a number from 1 to ${MAX_LIFE_MS}`)
  }
  return options
}

function invalid(field: string, why: string): never {
  throw new HermesError('INVALID_OPTION', { message: `delegate: ${field} ${why}`, details: { field } })
}

function refuse(why: string, cause?: unknown): never {
  throw new HermesError('DELEGATION_REFUSED', {
    message: `the delegation does not hold: ${why}`,
    ...(cause === undefined ? {} : { cause }),
  })
}
