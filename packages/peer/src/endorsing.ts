import {
  fromBase64url,
  HermesError,
  isCapabilityName,
  openEndorsement,
  signEndorsement,
  toBase64url,
} from '@hermes-peer/protocol'
import type { Revoked } from './identity/revocations.ts'
import type { Settings } from './options.ts'
import { createEndorsers, type Endorsers } from './routing/endorsements.ts'
import type { Opened, Seams } from './seams.ts'

export interface EndorseOptions {
  /** Until when it counts, ms from now. Default 30 days, at most a year. */
  ttlMs?: number
}

/** What this peer says of others, and what it makes of what others say. */
export interface Endorsing {
  readonly endorsers: Endorsers
  /** Throws `INVALID_OPTION`, `INVALID_NAME`, and `INVALID_OPTION` where this instance has no agent key to sign with. */
  endorse(agentId: string, capability: string, options?: EndorseOptions): string
}

const DAY_MS = 24 * 60 * 60 * 1000

/** Endorsements are signed with agent keys, which outlive those of instances. */
export function createEndorsing(
  { agentId, network, trust: { endorsers: named = [] } = {} }: Settings,
  { clock, keys }: Pick<Seams, 'clock' | 'keys'>,
  { key, agentKey = key.publicKey, agentSigner, trust }: Opened,
  revoked: Revoked,
): Endorsing {
  const signer = agentSigner ?? (agentKey.fingerprint === key.publicKey.fingerprint ? key : undefined)
  const known = (other: string): string | undefined => {
    const fingerprint = other === agentId ? agentKey.fingerprint : trust.known(other)
    return fingerprint !== undefined && revoked(other, fingerprint) === undefined ? fingerprint : undefined
  }
  return {
    endorsers: createEndorsers({ networkName: network, named, known, keys, clock }),
    endorse(other, capability, { ttlMs = 30 * DAY_MS } = {}) {
      if (other === agentId) invalid('agentId', 'is this agent itself, whose word for itself counts nothing')
      if (!isCapabilityName(capability)) invalid('capability', 'is not the name of a capability')
      if (!Number.isFinite(ttlMs) || ttlMs <= 0 || ttlMs > 365 * DAY_MS)
        invalid('ttlMs', 'must be from 1 ms to 365 days')
      if (!signer) return invalid('identity', 'is the key of an instance: endorsements are signed with the agent key')
      const now = clock.now()
      return toBase64url(
        signEndorsement(
          {
            network,
            endorser: agentId,
            key: signer.publicKey.raw,
            agent_id: other,
            capability,
            issued_at: now,
            expires_at: now + Math.ceil(ttlMs),
          },
          signer,
        ),
      )
    },
  }
}

/** Checks what others have said of this agent, before it is shown to anybody. Throws `INVALID_OPTION` that names the entry. */
export function checkEndorsements({ agentId, network, endorsements }: Settings, now: number): void {
  for (const [index, text] of endorsements.entries()) {
    const field = `endorsements[${index}]`
    const { agent_id, network: where, expires_at } = readEndorsement(text, field)
    if (agent_id !== agentId) invalid(field, `is for ${agent_id}, this agent is ${agentId}`)
    if (where !== network) invalid(field, `is for network ${where}, this is ${network}`)
    if (expires_at <= now) invalid(field, `has expired on ${new Date(expires_at).toISOString()}; ask for a new one`)
  }
}

function readEndorsement(text: string, field: string) {
  try {
    return openEndorsement(fromBase64url(text) ?? new Uint8Array()).endorsement
  } catch (cause) {
    return invalid(field, `is not an endorsement: ${(cause as Error).message}`, cause)
  }
}

function invalid(field: string, why: string, cause?: unknown): never {
  throw new HermesError('INVALID_OPTION', {
    message: `${field} ${why}`,
    details: { field },
    ...(cause === undefined ? {} : { cause }),
  })
}
