import { toBase64url } from '../bytes/parts.ts'
import type { PublicKey, SigningKey } from '../crypto/keys.ts'
import { sha256Hex } from '../crypto/sha256.ts'
import { LIMITS } from '../limits.ts'
import { isCapabilityName } from '../names.ts'
import { readCertificates, type Shown, writtenCertificates } from './chain.ts'
import { Fields } from './fields.ts'
import { openDocument, type SignedDocument, signDocument, verifyDocument } from './signed.ts'

export type Effects = 'none' | 'idempotent' | 'once'

/** What an agent says of itself; a promise, not a measurement. */
export interface CapabilityBounds {
  readonly max_concurrency?: number
  readonly budget_ms?: number
  readonly cost_level?: number
  /** 99 of 100 calls take no longer. */
  readonly p99_ms?: number
}

/** What a manifest says of one capability. */
export interface CapabilityEntry {
  readonly name: string
  readonly description: string
  readonly call_type: 'request' | 'task' | 'stream'
  readonly effects: Effects
  readonly input_schema: unknown
  readonly output_schema: unknown
  /** Of what it may tell before its end; absent where it tells nothing. */
  readonly partial_schema?: unknown
  readonly yields_schema?: unknown
  readonly question_schema?: unknown
  readonly answer_schema?: unknown
  readonly errors: Readonly<Record<string, unknown>>
  readonly labels: Readonly<Record<string, string | readonly string[]>>
  readonly constraints: CapabilityBounds
  readonly negative_capabilities: readonly string[]
}

/** An agent's signed self-description. */
export interface Manifest {
  readonly agent_id: string
  /** Raw agent key, 32 bytes. */
  readonly key: Uint8Array
  /** With one of the instance among them, its key has signed this; else the agent key. Default none. */
  readonly certificates?: readonly Uint8Array[]
  readonly network: string
  /** Rises with every change. */
  readonly serial: number
  /** Wall clock, ms. */
  readonly issued_at: number
  readonly expires_at: number
  readonly description: string
  readonly capabilities: readonly CapabilityEntry[]
  /** Endorsements of this agent in base64url, as they were given to it; nothing about them has been checked. */
  readonly endorsements?: readonly string[]
}

/** Endorsements in one manifest, and base64url characters of each. */
const MOST_ENDORSEMENTS = 16
const ENDORSEMENT_TEXT = Math.ceil(((LIMITS.endorsement + 2 + 64) * 4) / 3)

export function signManifest(manifest: Manifest, key: SigningKey): SignedDocument {
  const { certificates, ...fields } = manifest
  return signDocument(
    'manifest',
    { ...fields, key: toBase64url(manifest.key), ...writtenCertificates(certificates) },
    key,
  )
}

/** SHA-256 of the signed document, hex: what the handshake tells, so that an unchanged manifest is not asked again. */
export function manifestDigest(document: SignedDocument): string {
  return sha256Hex(document)
}

/**
 * Reads a manifest that must be signed by `signer`: an agent key, or the key that is found for who the manifest says it is of.
 * Throws `BAD_SIGNATURE`, `MALFORMED` that names the field, `LIMIT_EXCEEDED`, and what finding the key throws.
 */
export function openManifest(bytes: Uint8Array, signer: PublicKey | ((shown: Shown) => PublicKey)): Manifest {
  const document = openDocument(bytes, LIMITS.manifest, 'manifest')
  const fields = new Fields(document.value, 'manifest')
  let certificates: readonly Uint8Array[] = []
  if (typeof signer === 'function') {
    certificates = readCertificates(fields)
    verifyDocument('manifest', document, signer({ agent_id: fields.agentId(), key: fields.key(), certificates }))
  } else {
    verifyDocument('manifest', document, signer)
    certificates = readCertificates(fields)
  }
  const raw = fields.key()
  if (typeof signer !== 'function' && toBase64url(raw) !== toBase64url(signer.raw)) {
    fields.refuse('key', 'is not the key that signed it')
  }
  const entries = fields.raw('capabilities')
  if (!Array.isArray(entries) || entries.length > 256) fields.refuse('capabilities', 'is not a list of at most 256')
  return {
    agent_id: fields.agentId(),
    key: raw,
    ...(certificates.length > 0 ? { certificates } : {}),
    network: fields.network(),
    serial: fields.natural('serial'),
    issued_at: fields.natural('issued_at'),
    expires_at: fields.natural('expires_at'),
    description: fields.text('description', 2048),
    capabilities: (entries as unknown[]).map(readEntry),
    ...(fields.has('endorsements')
      ? { endorsements: fields.texts('endorsements', MOST_ENDORSEMENTS, ENDORSEMENT_TEXT) }
      : {}),
  }
}

const CALL_TYPES: ReadonlySet<unknown> = new Set(['request', 'task', 'stream'])
const EFFECTS: ReadonlySet<unknown> = new Set(['none', 'idempotent', 'once'])
const FURTHER_SCHEMAS = ['partial_schema', 'yields_schema', 'question_schema', 'answer_schema'] as const
const DECLARED = /^[A-Z][A-Z0-9_]{0,63}$/

function readEntry(value: unknown, index: number): CapabilityEntry {
  const fields = new Fields(value, `manifest: capabilities[${index}]`)
  const name = fields.raw('name')
  if (!isCapabilityName(name)) fields.refuse('name', 'is not a capability name')
  if (!CALL_TYPES.has(fields.raw('call_type'))) fields.refuse('call_type', 'is not request, task or stream')
  if (!EFFECTS.has(fields.raw('effects'))) fields.refuse('effects', 'is not none, idempotent or once')
  const errors = record(fields, 'errors', 64)
  for (const error of Object.keys(errors))
    if (!DECLARED.test(error)) fields.refuse('errors', 'has a name that is not UPPER_CASE')
  return {
    name: name as string,
    description: fields.text('description', 2048),
    call_type: fields.raw('call_type') as CapabilityEntry['call_type'],
    effects: fields.raw('effects') as Effects,
    input_schema: fields.raw('input_schema'),
    output_schema: fields.raw('output_schema'),
    ...Object.fromEntries(FURTHER_SCHEMAS.filter((field) => fields.has(field)).map((f) => [f, fields.raw(f)])),
    errors,
    labels: readLabels(fields),
    constraints: readConstraints(fields),
    negative_capabilities: fields.texts('negative_capabilities', 64, 256),
  }
}

function record(fields: Fields, field: string, most: number): Record<string, unknown> {
  const value = fields.raw(field)
  if (typeof value !== 'object' || value === null || Array.isArray(value) || Object.keys(value).length > most) {
    fields.refuse(field, `is not an object of at most ${most} entries`)
  }
  return value as Record<string, unknown>
}

function readLabels(fields: Fields): CapabilityEntry['labels'] {
  const labels = record(fields, 'labels', 64)
  for (const value of Object.values(labels)) {
    const texts = Array.isArray(value) ? value : [value]
    if (texts.length > 64 || !texts.every((text) => typeof text === 'string' && text.length <= 256)) {
      fields.refuse('labels', 'may hold texts and lists of texts only')
    }
  }
  return labels as CapabilityEntry['labels']
}

function readConstraints(fields: Fields): CapabilityEntry['constraints'] {
  const constraints = record(fields, 'constraints', 16)
  for (const field of ['max_concurrency', 'budget_ms', 'cost_level', 'p99_ms']) {
    const value = constraints[field]
    if (value !== undefined && !(Number.isSafeInteger(value) && (value as number) > 0)) {
      fields.refuse(`constraints.${field}`, 'is not a positive integer')
    }
  }
  return constraints as CapabilityEntry['constraints']
}
