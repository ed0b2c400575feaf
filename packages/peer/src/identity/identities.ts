import {
  HermesError,
  type InstanceCertificate,
  openChain,
  type PublicKey,
  publicKey,
  type Shown,
} from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import { createCertificateReader } from './certificate-reader.ts'
import type { KeyCheck } from './key-check.ts'
import type { Revoked } from './revocations.ts'
import { createSerials, type Serials } from './serials.ts'
import { type Claim, type Judgement, notAllowed, type Trust } from './trust.ts'

/** Who stands behind a key: the chain from the agent key to the key that signs has been followed. Whether it is trusted is another question. */
export interface Identity {
  readonly agentId: string
  readonly agentKey: PublicKey
  /** Signs for the agent, and is its transport identity: the agent key itself, or that of its instance. */
  readonly signer: PublicKey
  readonly instance: InstanceCertificate | undefined
  /** Certificates of an organisation for the agent key, as shown: its trust judges them. */
  readonly issued: readonly Uint8Array[]
}

/** How somebody was met. */
export type Meeting = Pick<Claim, 'met' | 'address' | 'chosen'>

/** The one place where it is judged who may speak for an agent: certificates, revocations, trust, serials. */
export interface Identities {
  /**
   * Follows the chain of who is shown. `forget`: its keys are those of a stranger and not worth remembering. Throws what
   * `openChain` throws.
   */
  read(shown: Shown, options?: { forget?: boolean }): Identity
  /** Whether trust has this key on record for that agent. */
  isKnown(agentId: string, fingerprint: string): boolean
  /** Decides at once, and changes nothing. */
  judge(identity: Identity, meeting: Meeting): Judgement
  /** It was admitted, and has proven itself. Throws `NOT_ALLOWED` when something has come up meanwhile, and what trust throws. */
  proven(identity: Identity, meeting: Meeting): void
  /** Why who was admitted may not speak any more: revoked, replaced, or its certificate has run out. */
  objection(identity: Identity, meeting: Meeting): string | undefined
}

export interface IdentitiesOptions {
  readonly network: string
  readonly trust: Trust
  readonly keys: KeyCheck
  readonly clock: Clock
  readonly tunables: Tunables
  /** Default: nothing is revoked. */
  readonly revoked?: Revoked
  /** Default: kept in memory. */
  readonly serials?: Serials
}

export function createIdentities(options: IdentitiesOptions): Identities {
  const { network, trust, keys, clock, tunables } = options
  const { revoked = () => undefined } = options
  const serials = options.serials ?? createSerials({ clock, overlapMs: tunables.instanceOverlapMs })
  const remembering = createCertificateReader()

  const claimOf = ({ agentId, agentKey, issued }: Identity, meeting: Meeting): Claim => ({
    agentId,
    key: agentKey.raw,
    fingerprint: agentKey.fingerprint,
    issued,
    ...meeting,
  })

  const revocation = ({ agentId, agentKey, signer }: Identity): string | undefined => {
    for (const { fingerprint } of [agentKey, signer]) {
      const reason = revoked(agentId, fingerprint)
      if (reason !== undefined) return `key ${fingerprint} of ${agentId} was revoked: ${reason}`
    }
    return undefined
  }

  return {
    read(shown, { forget = false } = {}) {
      const chain = openChain(shown, {
        network,
        now: clock.now(),
        // Nobody has measured the clock of whoever issued it: it may differ as much as that of any peer may.
        toleranceMs: tunables.maxClockOffsetMs,
        admit: forget ? publicKey : keys,
        ...(forget ? {} : { read: remembering }),
      })
      return { agentId: shown.agent_id, ...chain }
    },
    isKnown: (agentId, fingerprint) => trust.known(agentId) === fingerprint,
    judge(identity, meeting) {
      const gone = revocation(identity)
      if (gone !== undefined) return notAllowed(gone)
      const verdict = trust.judge(claimOf(identity, meeting))
      if (!verdict.admitted) return verdict
      const old = serials.objection(identity)
      return old === undefined ? verdict : notAllowed(old)
    },
    proven(identity, meeting) {
      const gone = revocation(identity)
      if (gone !== undefined) throw new HermesError('NOT_ALLOWED', { message: gone })
      trust.proven?.(claimOf(identity, meeting))
      serials.note(identity)
    },
    objection(identity, meeting) {
      const gone = revocation(identity) ?? serials.objection(identity)
      if (gone !== undefined) return gone
      const { instance, issued, agentId } = identity
      const late = clock.now() - tunables.maxClockOffsetMs
      if (instance && instance.not_after < late) return `the certificate of the instance of ${agentId} has run out`
      if (issued.length === 0) return undefined
      const verdict = trust.judge(claimOf(identity, meeting))
      return verdict.admitted ? undefined : verdict.reason
    },
  }
}
