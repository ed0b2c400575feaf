import { ascii, domain, join, partOf } from './bytes.ts'
import { parseCompact } from './compact.ts'
import { sha256, type VerifyingKey } from './ed25519.ts'
import { checkFields, isBase64url, isListOf, isObjectOf, isOneOf, isText, isWhole, type Test } from './fields.ts'
import type { Json, JsonMap } from './json.ts'
import { isAgentId, isHash, isName } from './names.ts'

export type Kind = 'hello' | 'challenge' | 'proof' | 'welcome'

const matches =
  (pattern: RegExp): Test =>
  (value) =>
    typeof value === 'string' && pattern.test(value)

const MOST = 16
const isVersion = matches(/^[0-9]{1,5}\.[0-9]{1,5}$/)
const isFeature = matches(/^[a-z][a-z0-9_-]{0,31}$/)
const CONTENT_TYPES: Json[] = ['application/json', 'application/msgpack']

const HELLO: { [field: string]: Test } = {
  versions: isListOf(isVersion, MOST),
  content_types: isListOf(isText(), MOST),
  features: isListOf(isFeature, MOST),
  network: isName,
  nonce: isBase64url(32),
  agent_id: isAgentId,
  key: isBase64url(32),
  certificates: isListOf(isBase64url(), 3),
  limits: isObjectOf({ max_envelope_bytes: isWhole(1), max_in_flight: isWhole(1) }),
  time: isWhole(),
}

const CHOSEN: { [field: string]: Test } = {
  version: isVersion,
  content_types: isListOf(isOneOf(...CONTENT_TYPES), MOST),
  features: isListOf(isFeature, MOST),
}

const PROOF: { [field: string]: Test } = {
  epoch: isWhole(1),
  next_sequence: isWhole(1),
  seen_epoch: isWhole(),
  manifest_digest: isHash,
}

const FIELDS: Record<Kind, { [field: string]: Test }> = {
  hello: HELLO,
  challenge: { ...HELLO, chosen: isObjectOf(CHOSEN) },
  proof: PROOF,
  welcome: { ...PROOF, link_id: matches(/^[0-9a-f]{16}$/) },
}

/** What a stranger may be told. */
const TOLD: Json[] = ['UNSUPPORTED_VERSION', 'CLOCK_SKEW', 'NOT_ALLOWED', 'IDENTITY_MISMATCH', 'DUPLICATE_AGENT']

/** The body of a message, or the refusal that may stand in its place. */
export function readMessage(body: Uint8Array, kind: Kind): { message: JsonMap } | { told: Json } {
  const json = parseCompact(body, 'handshake')
  if (json.error_code !== undefined)
    return { told: TOLD.includes(json.error_code) ? json.error_code : 'HANDSHAKE_REFUSED' }
  const keeps = json.revocations !== undefined && (kind === 'proof' || kind === 'welcome')
  const fields = keeps ? { ...FIELDS[kind], revocations: isHash } : FIELDS[kind]
  checkFields(json, fields, 'handshake')
  const message = Object.fromEntries(Object.keys(fields).map((field) => [field, json[field] as Json]))
  if (Array.isArray(message.content_types)) {
    message.content_types = message.content_types.filter((type) => CONTENT_TYPES.includes(type))
  }
  return { message }
}

export interface Connection {
  network: string
  protocol: string
  initiator: string
  responder: string
}

/** SHA-256 of domain, network, protocol id, both peer ids with their roles and the raw messages, each as part(). */
export function transcript(connection: Connection, messages: Uint8Array[]): Uint8Array {
  const { network, protocol, initiator, responder } = connection
  const texts = ['hermes-peer/transcript/1', network, protocol, 'I', initiator, 'R', responder]
  return sha256(...[...texts.map(ascii), ...messages].map(partOf))
}

export function transcriptHolds(
  key: VerifyingKey,
  what: 'proof' | 'welcome',
  hash: Uint8Array,
  signature: Uint8Array,
): boolean {
  return key.verifies(join(domain(what), hash), signature)
}
