import { cursor, domain, join, partOf } from './bytes.ts'
import { isMap } from './compact.ts'
import { type VerifyingKey, verifyingKey } from './ed25519.ts'
import { checkFields, isBase64url, isListOf, isObjectOf, isOneOf, isText, isWhole, type Test } from './fields.ts'
import { type Json, type JsonMap, parseJson } from './json.ts'
import { isAgentId, isCapability, isName } from './names.ts'
import { Refused } from './refused.ts'

export type Kind = 'manifest' | 'presence' | 'certificate' | 'endorsement' | 'revocation'

type Fields = { [field: string]: Test }

const MOST_CERTIFICATES = 3
const isFingerprint: Test = (value) => typeof value === 'string' && /^sha256:[0-9a-f]{64}$/.test(value)

const isRecordOf =
  (test: (value: Json, key: string) => boolean, most: number): Test =>
  (value) =>
    isMap(value) && Object.keys(value).length <= most && Object.entries(value).every(([key, one]) => test(one, key))

const isLabel: Test = (value) => isText(256)(value) || isListOf(isText(256), 64)(value)
const NUMBERS = ['max_concurrency', 'budget_ms', 'cost_level', 'p99_ms']

const CAPABILITY: Fields = {
  name: isCapability,
  description: isText(2048),
  call_type: isOneOf('request', 'task', 'stream'),
  effects: isOneOf('none', 'idempotent', 'once'),
  errors: isRecordOf((_, name) => /^[A-Z][A-Z0-9_]{0,63}$/.test(name), 64),
  labels: isRecordOf(isLabel, 64),
  constraints: isRecordOf((value, name) => !NUMBERS.includes(name) || isWhole(1)(value), 16),
  negative_capabilities: isListOf(isText(256), 64),
}

const COMMON: Fields = { agent_id: isAgentId, network: isName }
const LIFE: Fields = { network: isName, serial: isWhole(), not_before: isWhole(), not_after: isWhole() }
const VALIDITY: Fields = { ...COMMON, ...LIFE }

const FIELDS: Record<string, Fields> = {
  manifest: {
    ...COMMON,
    key: isBase64url(32),
    serial: isWhole(),
    issued_at: isWhole(),
    expires_at: isWhole(),
    description: isText(2048),
    capabilities: isListOf(isObjectOf(CAPABILITY), 256),
    'endorsements?': isListOf(isText(1454), 16),
  },
  presence: {
    ...COMMON,
    key: isBase64url(32),
    epoch: isWhole(),
    counter: isWhole(),
    state: isOneOf('up', 'draining', 'leaving'),
    addresses: isListOf(isText(512), 32),
    capabilities: isListOf(isCapability, 256),
    load: isWhole(0, 100),
    queue_depth: isWhole(),
    success_rate_15m: isWhole(0, 1000),
    manifest_serial: isWhole(),
  },
  endorsement: {
    ...COMMON,
    endorser: isAgentId,
    key: isBase64url(32),
    capability: isCapability,
    issued_at: isWhole(),
    expires_at: isWhole(),
  },
  instance: { ...VALIDITY, instance_key: isBase64url(32) },
  team: { ...LIFE, team: isName, team_key: isBase64url(32), prefix: isAgentId, roles: isListOf(isName, 32) },
  revocation: {
    ...COMMON,
    key: isFingerprint,
    serial: isWhole(),
    reason: isText(256),
    signer: isBase64url(32),
  },
  organisation: { ...VALIDITY, agent_key: isBase64url(32), team: isName, roles: isListOf(isName, 32) },
}

const LIMITS: Record<Kind, number> = {
  manifest: 64 * 1024,
  presence: 16 * 1024,
  certificate: 2 * 1024,
  endorsement: 1024,
  revocation: 8 * 1024,
}

/**
 * Reads a document that must be signed by `signer` (a presence, an endorsement and a revocation: by the key that they name, unless
 * certificates beside it name another). `now` judges certificates.
 */
export function readDocument(
  bytes: Uint8Array,
  kind: Kind,
  signer: VerifyingKey,
  now: number,
  toleranceMs = 0,
): JsonMap {
  const at = cursor(bytes, 'document')
  const body = at.part(LIMITS[kind])
  const signature = at.take(64)
  at.end()
  const json = parseJson(body, 'payload')
  if (!isMap(json)) throw new Refused('document', 'not an object')
  const chained = 'certificates' in json && Array.isArray(json.certificates) && json.certificates.length > 0
  const own = kind === 'presence' || kind === 'endorsement' ? 'key' : kind === 'revocation' ? 'signer' : undefined
  const key = own && (own === 'signer' || !chained) ? ownKey(json, own) : signer
  if (!key.verifies(join(domain(kind), partOf(body)), signature)) throw new Refused('signature', 'a forged document')
  const name = kind === 'certificate' ? String(json.kind) : kind
  const fields = Object.hasOwn(FIELDS, name) ? FIELDS[name] : undefined
  if (fields === undefined) throw new Refused('document', `a certificate of kind ${name}`)
  checkFields(json, fields, 'document')
  if ('certificates' in json && kind !== 'certificate') {
    checkFields(json, { certificates: isListOf(isBase64url(), MOST_CERTIFICATES) }, 'document')
  }
  if (kind === 'manifest' && !chained && json.key !== Buffer.from(key.raw).toString('base64url')) {
    throw new Refused('document', 'not the key that signed it')
  }
  if (kind === 'certificate') {
    const about = json.kind === 'instance' ? 'instance_key' : json.kind === 'team' ? 'team_key' : 'agent_key'
    verifyingKey(Buffer.from(json[about] as string, 'base64url'))
    if ((json.not_before as number) > now + toleranceMs || (json.not_after as number) < now - toleranceMs) {
      throw new Refused('expired', 'outside its time')
    }
  }
  return json
}

/** What a document says of its kind, whoever signed it. */
export function kindOf(bytes: Uint8Array): Json {
  const at = cursor(bytes, 'document')
  const body = at.part(LIMITS.certificate)
  at.take(64)
  at.end()
  const json = parseJson(body, 'payload')
  if (!isMap(json)) throw new Refused('document', 'not an object')
  return json.kind ?? null
}

function ownKey(json: JsonMap, field: string): VerifyingKey {
  checkFields(json, { [field]: isBase64url(32) }, 'document')
  return verifyingKey(Buffer.from(json[field] as string, 'base64url'))
}

/** The bytes of `{document, signature}`, both base64url. */
export function fromFile(file: Json): Uint8Array {
  const { document, signature } = checkFields(file, { document: isBase64url(), signature: isBase64url(64) }, 'document')
  return join(partOf(Buffer.from(document as string, 'base64url')), Buffer.from(signature as string, 'base64url'))
}
