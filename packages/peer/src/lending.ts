import { fingerprintOf, HermesError } from '@hermes-peer/protocol'
import type { Revoked } from './identity/revocations.ts'
import type { Settings } from './options.ts'
import { createDelegations, type Delegations } from './policy/delegations.ts'
import type { Opened, Seams } from './seams.ts'

/**
 * Delegations of one running peer, signed with agent keys: whose they are is for trust to say. Without its agent key at hand, an instance signs
 * what nobody takes.
 */
export function delegationsOf(
  { agentId, network, tunables }: Settings,
  { clock, keys }: Seams,
  { key, agentKey = key.publicKey, agentSigner = key, trust }: Opened,
  revoked: Revoked,
): Delegations {
  return createDelegations({
    agentId,
    network,
    key: agentSigner,
    clock,
    tunables,
    keyOf(other, raw) {
      const fingerprint = fingerprintOf(raw)
      if (revoked(other, fingerprint) !== undefined) return undefined
      if (other === agentId) return fingerprint === agentKey.fingerprint ? agentKey : undefined
      const onRecord = trust.known(other)
      const claim = { agentId: other, key: raw, fingerprint, met: 'gossip', chosen: false } as const
      // A member of an organisation has shown its certificates before.
      const admitted = onRecord === undefined ? trust.judge(claim).admitted : onRecord === fingerprint
      if (!admitted) return undefined
      try {
        return keys(raw)
      } catch (error) {
        if (HermesError.from(error).code === 'BAD_KEY') return undefined
        throw error
      }
    },
  })
}
