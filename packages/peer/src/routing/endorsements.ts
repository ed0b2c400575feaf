import { type Endorsement, fromBase64url, type Manifest, openEndorsement, type PublicKey } from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'

/** Who vouches for an agent in one capability, among those whose word counts here. */
export type Endorsers = (manifest: Manifest, capability: string) => readonly string[]

export interface EndorsersOptions {
  readonly networkName: string
  /** Agents whose word counts. */
  readonly named: readonly string[]
  /** Fingerprint on record of an agent; undefined: its word cannot be proven. */
  known(agentId: string): string | undefined
  readonly keys: (raw: Uint8Array) => PublicKey
  readonly clock: Pick<Clock, 'now'>
}

/**
 * Reads the endorsements that manifests carry. Counted is what a named endorser signed with the key on record, for this agent, in
 * this network, and what has not expired; an agent's word for itself is none. Anything else in a manifest is passed over: it is only what somebody
 * says of itself. Signatures are checked once for each manifest.
 */
export function createEndorsers({ networkName, named, known, keys, clock }: EndorsersOptions): Endorsers {
  const trusted = new Set(named)
  const read = new WeakMap<Manifest, readonly Endorsement[]>()

  const open = (manifest: Manifest): readonly Endorsement[] =>
    (manifest.endorsements ?? []).flatMap((text) => {
      try {
        const { endorsement, key } = openEndorsement(fromBase64url(text) ?? new Uint8Array(), keys)
        const { network, agent_id, endorser } = endorsement
        const fits = network === networkName && agent_id === manifest.agent_id && endorser !== agent_id
        return fits && trusted.has(endorser) && known(endorser) === key.fingerprint ? [endorsement] : []
      } catch {
        return []
      }
    })

  return (manifest, capability) => {
    if (trusted.size === 0 || !manifest.endorsements?.length) return []
    let endorsements = read.get(manifest)
    if (endorsements === undefined) {
      endorsements = open(manifest)
      read.set(manifest, endorsements)
    }
    const now = clock.now()
    const valid = endorsements.filter((one) => one.capability === capability && one.expires_at > now)
    return [...new Set(valid.map(({ endorser }) => endorser))]
  }
}
