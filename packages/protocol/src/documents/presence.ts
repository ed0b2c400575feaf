import { toBase64url } from '../bytes/parts.ts'
import { type PublicKey, publicKey, type SigningKey } from '../crypto/keys.ts'
import { LIMITS } from '../limits.ts'
import { isCapabilityName } from '../names.ts'
import { readCertificates, type Shown, writtenCertificates } from './chain.ts'
import { Fields } from './fields.ts'
import { openDocument, type SignedDocument, signDocument, verifyDocument } from './signed.ts'

export type PresenceState = 'up' | 'draining' | 'leaving'

/** What a peer says of itself on the presence topic. */
export interface Presence {
  readonly agent_id: string
  /** Raw agent key, 32 bytes. */
  readonly key: Uint8Array
  /** With one of the instance among them, its key has signed this; else the agent key. Default none. */
  readonly certificates?: readonly Uint8Array[]
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
  const { certificates, ...fields } = presence
  return signDocument(
    'presence',
    {
      ...fields,
      key: toBase64url(presence.key),
      success_rate_15m: Math.round(presence.success_rate_15m * 1000),
      ...writtenCertificates(certificates),
    },
    key,
  )
}

export interface OpenedPresence {
  readonly presence: Presence
  /** The key that signed it. */
  readonly key: PublicKey
}

/**
 * Reads a presence document and checks that it is signed by the key that `signerOf` finds for who it says it is of: by default
 * the key in it. Whether that key speaks for the agent is for trust to say. What `signerOf` throws is passed on.
 */
export function openPresence(
  bytes: Uint8Array,
  signerOf: (shown: Shown) => PublicKey = ({ key }) => publicKey(key),
): OpenedPresence {
  const document = openDocument(bytes, LIMITS.presence, 'presence')
  const fields = new Fields(document.value, 'presence')
  const agentId = fields.agentId()
  const raw = fields.key()
  const certificates = readCertificates(fields)
  const key = signerOf({ agent_id: agentId, key: raw, certificates })
  verifyDocument('presence', document, key)
  const state = fields.raw('state')
  if (!STATES.has(state)) fields.refuse('state', 'is not up, draining or leaving')
  return {
    key,
    presence: {
      agent_id: agentId,
      key: raw,
      ...(certificates.length > 0 ? { certificates } : {}),
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
