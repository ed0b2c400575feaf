import { decodeCompact, encodeCompact } from '../bytes/compact-json.ts'
import { fromBase64url, part, toBase64url } from '../bytes/parts.ts'
import type { ContentType } from '../envelope/header-types.ts'
import type { ErrorCode } from '../errors/codes.ts'
import { HermesError } from '../errors/hermes-error.ts'
import { isAgentId, isName } from '../names.ts'

/** What one side accepts; each side keeps to the limits of the other. */
export interface LinkLimits {
  /** Header and payload of one envelope, bytes. */
  readonly max_envelope_bytes: number
  /** Requests of one caller that are served at a time. */
  readonly max_in_flight: number
}

/** First message, initiator to responder. */
export interface Hello {
  readonly versions: readonly string[]
  readonly content_types: readonly ContentType[]
  readonly features: readonly string[]
  readonly network: string
  /** 32 bytes, used once. */
  readonly nonce: Uint8Array
  readonly agent_id: string
  /** Raw agent key, 32 bytes. */
  readonly key: Uint8Array
  /** Signed documents, 0 to 3: of a team, of the organisation, of the instance. */
  readonly certificates: readonly Uint8Array[]
  readonly limits: LinkLimits
  /** Wall clock of the sender, ms. */
  readonly time: number
}

/** Second message, responder to initiator: the same of the responder, and what it chose. */
export interface Challenge extends Hello {
  readonly chosen: {
    readonly version: string
    readonly content_types: readonly ContentType[]
    readonly features: readonly string[]
  }
}

/** Third message, initiator to responder; followed by a signature. */
export interface Proof {
  readonly epoch: number
  /** The first sequence that will be sent over this link. */
  readonly next_sequence: number
  /** Highest epoch known of the other side, 0 if none. */
  readonly seen_epoch: number
  /** SHA-256 of the signed manifest, hex. */
  readonly manifest_digest: string
  /** Names the set of revocations that it keeps: SHA-256 of theirs in order, hex. Absent: it keeps none. */
  readonly revocations?: string
}

/** Fourth message, responder to initiator; followed by a signature. */
export interface Welcome extends Proof {
  /** Names the link in logs, 16 hex digits. */
  readonly link_id: string
}

/** A refusal may stand in the place of any message. A stranger learns the code only (and the offset of its clock). */
export interface Refusal {
  readonly error_code: ErrorCode
  readonly offset_ms?: number
}

/** The codes that a stranger may be told; every other reason is told as `HANDSHAKE_REFUSED`. */
export const REFUSALS = [
  'HANDSHAKE_REFUSED',
  'UNSUPPORTED_VERSION',
  'CLOCK_SKEW',
  'NOT_ALLOWED',
  'IDENTITY_MISMATCH',
  'DUPLICATE_AGENT',
] as const satisfies readonly ErrorCode[]

export const SIGNATURE_LENGTH = 64
const NONCE_LENGTH = 32
/** Least `max_envelope_bytes` that makes sense: a header of 4 KiB and as much again. */
const LEAST_ENVELOPE = 8 * 1024

const CONTENT_TYPES: readonly string[] = ['application/json', 'application/msgpack']
const VERSION = /^\d{1,5}\.\d{1,5}$/
const FEATURE = /^[a-z][a-z0-9_-]{0,31}$/
const HEX_64 = /^[0-9a-f]{64}$/
const LINK_ID = /^[0-9a-f]{16}$/

/** Message bytes: part(JSON). */
export function encodeHello(hello: Hello | Challenge): Uint8Array {
  return part(
    encodeCompact({
      ...hello,
      nonce: toBase64url(hello.nonce),
      key: toBase64url(hello.key),
      certificates: hello.certificates.map(toBase64url),
    }),
  )
}

export function encodeProof(proof: Proof | Welcome): Uint8Array {
  return part(encodeCompact(proof))
}

export function encodeRefusal(refusal: Refusal): Uint8Array {
  return part(encodeCompact(refusal))
}

type Raw = Record<string, unknown>

/** The JSON of a message body (its length taken off). Throws `MALFORMED`, or the refusal that it holds. */
function open(body: Uint8Array, what: string): Raw {
  const raw = decodeCompact(body, what)
  if (raw.error_code === undefined) return raw
  const told = REFUSALS.find((known) => known === raw.error_code)
  const code = told ?? 'HANDSHAKE_REFUSED'
  const offset = Number.isSafeInteger(raw.offset_ms) ? (raw.offset_ms as number) : undefined
  throw new HermesError(code, {
    remote: true,
    ...(offset === undefined ? {} : { details: { offset_ms: offset } }),
    ...(code === 'CLOCK_SKEW' && offset !== undefined
      ? { message: `the other peer says that this clock is off by ${offset} ms` }
      : {}),
  })
}

export function decodeHello(body: Uint8Array): Hello {
  const raw = open(body, 'hello')
  closed(raw, 'hello', HELLO_KEYS)
  return readHello(raw, 'hello')
}

export function decodeChallenge(body: Uint8Array): Challenge {
  const raw = open(body, 'challenge')
  closed(raw, 'challenge', [...HELLO_KEYS, 'chosen'])
  const chosen = raw.chosen
  if (typeof chosen !== 'object' || chosen === null) refuse('challenge', 'chosen')
  const { version, content_types, features } = closed(chosen as Raw, 'challenge', [
    'version',
    'content_types',
    'features',
  ])
  return {
    ...readHello(raw, 'challenge'),
    chosen: {
      version: typeof version === 'string' && VERSION.test(version) ? version : refuse('challenge', 'chosen.version'),
      content_types: strings(content_types, 'challenge', 'chosen.content_types', (s) =>
        CONTENT_TYPES.includes(s),
      ) as ContentType[],
      features: strings(features, 'challenge', 'chosen.features', (s) => FEATURE.test(s)),
    },
  }
}

export function decodeProofMessage(body: Uint8Array): Proof {
  const raw = open(body, 'proof')
  closed(raw, 'proof', PROOF_KEYS)
  return readProof(raw, 'proof')
}

export function decodeWelcome(body: Uint8Array): Welcome {
  const raw = open(body, 'welcome')
  closed(raw, 'welcome', [...PROOF_KEYS, 'link_id'])
  const link_id = raw.link_id
  if (typeof link_id !== 'string' || !LINK_ID.test(link_id)) refuse('welcome', 'link_id')
  return { ...readProof(raw, 'welcome'), link_id: link_id as string }
}

const HELLO_KEYS = [
  'versions',
  'content_types',
  'features',
  'network',
  'nonce',
  'agent_id',
  'key',
  'certificates',
  'limits',
  'time',
]
const PROOF_KEYS = ['epoch', 'next_sequence', 'seen_epoch', 'manifest_digest']

/** Of a higher minor version more keys may come; they are ignored, as every signature covers the bytes. */
function closed(raw: Raw, what: string, keys: readonly string[]): Raw {
  for (const key of keys) if (!Object.hasOwn(raw, key)) refuse(what, key)
  return raw
}

function readHello(raw: Raw, what: string): Hello {
  const limits = raw.limits as Raw | null
  const bytes = natural(limits?.max_envelope_bytes)
  // Less would leave no room for a header and a heartbeat.
  if (bytes !== undefined && bytes < LEAST_ENVELOPE) refuse(what, 'limits')
  const inFlight = natural(limits?.max_in_flight)
  return {
    versions: strings(raw.versions, what, 'versions', (s) => VERSION.test(s)),
    // A newer peer may know more types: they are kept out, not refused.
    content_types: strings(raw.content_types, what, 'content_types', () => true).filter((s) =>
      CONTENT_TYPES.includes(s),
    ) as ContentType[],
    features: strings(raw.features, what, 'features', (s) => FEATURE.test(s)),
    network: isName(raw.network) ? raw.network : refuse(what, 'network'),
    nonce: base64(raw.nonce, NONCE_LENGTH) ?? refuse(what, 'nonce'),
    agent_id: isAgentId(raw.agent_id) ? raw.agent_id : refuse(what, 'agent_id'),
    key: base64(raw.key, 32) ?? refuse(what, 'key'),
    certificates: certificates(raw.certificates, what),
    limits: bytes && inFlight ? { max_envelope_bytes: bytes, max_in_flight: inFlight } : refuse(what, 'limits'),
    time: natural(raw.time) ?? refuse(what, 'time'),
  }
}

function readProof(raw: Raw, what: string): Proof {
  const digest = raw.manifest_digest
  return {
    epoch: natural(raw.epoch) || refuse(what, 'epoch'),
    next_sequence: natural(raw.next_sequence) || refuse(what, 'next_sequence'),
    seen_epoch: natural(raw.seen_epoch) ?? refuse(what, 'seen_epoch'),
    manifest_digest: typeof digest === 'string' && HEX_64.test(digest) ? digest : refuse(what, 'manifest_digest'),
    ...revocations(raw.revocations, what),
  }
}

function revocations(value: unknown, what: string): { revocations?: string } {
  if (value === undefined) return {}
  return typeof value === 'string' && HEX_64.test(value) ? { revocations: value } : refuse(what, 'revocations')
}

function certificates(value: unknown, what: string): Uint8Array[] {
  const texts = strings(value, what, 'certificates', () => true)
  if (texts.length > 3) refuse(what, 'certificates')
  return texts.map((text) => fromBase64url(text) ?? refuse(what, 'certificates'))
}

function base64(value: unknown, length: number): Uint8Array | undefined {
  const bytes = typeof value === 'string' ? fromBase64url(value) : undefined
  return bytes?.length === length ? bytes : undefined
}

function natural(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined
}

function strings(value: unknown, what: string, field: string, fits: (text: string) => boolean): string[] {
  const sound = Array.isArray(value) && value.length <= 16 && value.every((s) => typeof s === 'string' && fits(s))
  return sound ? (value as string[]) : refuse(what, field)
}

function refuse(what: string, field: string): never {
  throw new HermesError('MALFORMED', { message: `${what}: ${field} is missing or not of its form`, details: { field } })
}
