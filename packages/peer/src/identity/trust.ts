import type { Membership } from './membership.ts'
import type { Notes } from './notes.ts'
import type { Revoked } from './revocations.ts'

/** Somebody says that a key speaks for an agent; the key itself has been proven already. */
export interface Claim {
  readonly agentId: string
  /** Raw agent key, 32 bytes, and its fingerprint. */
  readonly key: Uint8Array
  readonly fingerprint: string
  /** Certificates of an organisation for that key, as they were shown. Absent: none. */
  readonly issued?: readonly Uint8Array[]
  /** `inbound` and `outbound`: in a handshake. `gossip`: in a signed document, a presence report or a manifest. */
  readonly met: 'inbound' | 'outbound' | 'gossip'
  /** Multiaddr of the other end; absent for gossip. */
  readonly address?: string
  /** True when the user gave that very address: only then may an unknown key be pinned. */
  readonly chosen: boolean
}

export type Judgement =
  | { readonly admitted: true }
  | { readonly admitted: false; readonly code: 'NOT_ALLOWED' | 'IDENTITY_MISMATCH'; readonly reason: string }

/**
 * What the key at the other end of a fresh connection says, before any handshake. `stranger`: certainly nobody who would be
 * admitted. `unknown`: only a handshake tells, as where a certificate in it may admit a key that was never seen.
 */
export type Standing = 'admitted' | 'unknown' | 'stranger'

/** Which keys speak for which agent ids. One agent id has one key, in every mode. */
export interface Trust {
  /** Decides at once, and changes nothing. */
  judge(claim: Claim): Judgement
  /** The claim was admitted, and proven by a whole handshake or a signed document. Throws when it cannot be remembered as it must be. */
  proven?(claim: Claim): void
  /** Fingerprint on record for an agent, undefined when there is none. */
  known(agentId: string): string | undefined
  /** Team and roles of an agent on record; undefined when this mode knows of none. */
  membership?(agentId: string): Membership | undefined
  /** Hands over what has to be kept across restarts; once, before anything is judged. */
  restore?(memory: TrustMemory): Promise<void>
  /** Whether that raw key may revoke the key of any agent: it is an organisation's. */
  mayRevoke?(signer: Uint8Array): boolean
  /** What the fingerprint of an instance key says by itself; absent: nothing, so `unknown`. */
  standing?(fingerprint: string): Standing
  /** One sentence for the operator: who is admitted. */
  describe(): string
}

export interface TrustMemory {
  readonly notes: Notes
  readonly revoked: Revoked
}

export const ADMITTED: Judgement = { admitted: true }

export function notAllowed(reason: string): Judgement {
  return { admitted: false, code: 'NOT_ALLOWED', reason }
}

/** The wording names both fingerprints, so that the operator can compare them with the owner. */
export function mismatch(agentId: string, presented: string, known: string): Judgement {
  return {
    admitted: false,
    code: 'IDENTITY_MISMATCH',
    reason: `${agentId} came with key ${presented}, on record is ${known}: it has rotated, or it is an impostor`,
  }
}

/** Admits nobody. */
export function nobody(): Trust {
  return {
    judge: ({ agentId }) => notAllowed(`${agentId} is not admitted: no trust is configured`),
    known: () => undefined,
    standing: () => 'stranger',
    describe: () => 'nobody is admitted: no trust is configured',
  }
}

/**
 * Asks each in turn. An agent id on record in one of them is judged by that one alone, so that a later, softer mode never
 * overrules a key on record.
 */
export function anyOf(modes: readonly Trust[]): Trust {
  return {
    judge(claim) {
      const owner = modes.find((mode) => mode.known(claim.agentId) !== undefined)
      if (owner) return owner.judge(claim)
      let last: Judgement = notAllowed(`${claim.agentId} is not admitted`)
      for (const mode of modes) {
        last = mode.judge(claim)
        if (last.admitted) return last
      }
      return last
    },
    proven(claim) {
      const owner = modes.find((mode) => mode.known(claim.agentId) !== undefined)
      const mode = owner ?? modes.find((one) => one.judge(claim).admitted)
      mode?.proven?.(claim)
    },
    known(agentId) {
      for (const mode of modes) {
        const fingerprint = mode.known(agentId)
        if (fingerprint) return fingerprint
      }
      return undefined
    },
    // Whoever has the key on record says what else is known of the agent: a later mode must not lend it a role.
    membership: (agentId) => modes.find((mode) => mode.known(agentId) !== undefined)?.membership?.(agentId),
    async restore(memory) {
      for (const mode of modes) await mode.restore?.(memory)
    },
    mayRevoke: (signer) => modes.some((mode) => mode.mayRevoke?.(signer) === true),
    standing(fingerprint) {
      const said = modes.map((mode) => mode.standing?.(fingerprint) ?? 'unknown')
      return said.find((one) => one === 'admitted') ?? said.find((one) => one === 'unknown') ?? 'stranger'
    },
    describe: () => modes.map((mode) => mode.describe()).join('; '),
  }
}
