import { toBase64url } from '../bytes/parts.ts'
import { type PublicKey, publicKey, type SigningKey } from '../crypto/keys.ts'
import { LIMITS } from '../limits.ts'
import { isCapabilityName } from '../names.ts'
import { Fields } from './fields.ts'
import { openDocument, type SignedDocument, signDocument, verifyDocument } from './signed.ts'

export type PresenceState = 'up' | 'draining' | 'leaving'

/** What a peer says of itself on the presence topic. */
export interface Presence {
  readonly agent_id: string
  /** Raw key, 32 bytes. */
  readonly key: Uint8Array
  readonly network: string
  readonly epoch: number
  /** Rises within an epoch: (epoch, counter) orders the reports of one agent. */
  readonly counter: number
  readonly state: PresenceState
  readonly addresses: readonly string[]
  readonly capabilities: readonly string[]
  /** 0..100 */
  readonly load: number
  readonly queue_depth: number
  /** 0..1 in steps of 0.001, as an integer of thousandths on the wire. */
  readonly success_rate_15m: number
  readonly manifest_serial: number
}

const STATES: ReadonlySet<unknown> = new Set(['up', 'draining', 'leaving'])

export function signPresence(presence: Presence, key: SigningKey): SignedDocument {
  return signDocument(
    'presence',
    { ...presence, key: toBase64url(presence.key), success_rate_15m: Math.round(presence.success_rate_15m * 1000) },
    key,
  )
}

export interface OpenedPresence {
  readonly presence: Presence
  readonly key: PublicKey
}

/**
 * Reads a presence document and checks that the key in it signed it. Whether that key speaks for the agent is for trust to say.
 * `keys` checks the key that is to verify it, given as raw bytes with the agent it is claimed for: so a key that is known need not be
 * checked again. What it throws is passed on.
 */
export function openPresence(
  bytes: Uint8Array,
  keys: (raw: Uint8Array, agentId: string) => PublicKey = publicKey,
): OpenedPresence {
  const document = openDocument(bytes, LIMITS.presence, 'presence')
  const fields = new Fields(document.value, 'presence')
  const agentId = fields.agentId()
  const key = keys(fields.key(), agentId)
  verifyDocument('presence', document, key)
  const state = fields.raw('state')
  if (!STATES.has(state)) fields.refuse('state', 'is not up, draining or leaving')
  return {
    key,
    presence: {
      agent_id: agentId,
      key: key.raw,
      network: fields.network(),
      epoch: fields.natural('epoch'),
      counter: fields.natural('counter'),
      state: state as PresenceState,
      addresses: fields.texts('addresses', 32, 512),
      capabilities: fields.texts('capabilities', 256, 80, isCapabilityName),
      load: fields.natural('load', 100),
      queue_depth: fields.natural('queue_depth'),
      success_rate_15m: fields.natural('success_rate_15m', 1000) / 1000,
      manifest_serial: fields.natural('manifest_serial'),
    },
  }
}
