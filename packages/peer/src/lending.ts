import { fingerprintOf, HermesError } from '@hermes-peer/protocol'
import type { Settings } from './options.ts'
import { createDelegations, type Delegations } from './policy/delegations.ts'
import type { Opened, Seams } from './seams.ts'

/** Delegations of one running peer: whose keys they are signed with is for trust to say. */
export function delegationsOf(
  { agentId, network, tunables }: Settings,
  { clock, keys }: Seams,
  { key, trust }: Opened,
): Delegations {
  return createDelegations({
    agentId,
    network,
    key,
    clock,
    tunables,
    keyOf(other, raw) {
      const fingerprint = fingerprintOf(raw)
      if (other === agentId) return fingerprint === key.publicKey.fingerprint ? key.publicKey : undefined
      if (!trust.judge({ agentId: other, key: raw, fingerprint, met: 'gossip', chosen: false }).admitted)
        return undefined
      try {
        return keys(raw)
      } catch (error) {
        if (HermesError.from(error).code === 'BAD_KEY') return undefined
        throw error
      }
    },
  })
}
