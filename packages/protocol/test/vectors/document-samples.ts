import {
  type CapabilityEntry,
  type Endorsement,
  type InstanceCertificate,
  type Manifest,
  type OrganisationCertificate,
  type Presence,
  type Revocation,
  signCertificate,
  type TeamCertificate,
  toBase64url,
} from '../../src/index.ts'
import { KEYS, NETWORK, NOW } from './scene.ts'

const CAPABILITY: CapabilityEntry = {
  name: 'fix-test',
  description: '找出并修复失败的测试 🔧',
  call_type: 'request',
  effects: 'idempotent',
  input_schema: { type: 'object', properties: { '\u20ac': {}, '\ud83d\ude00': {}, '\ufb33': {} }, required: [] },
  output_schema: { type: ['string', 'null'], default: null },
  errors: { NOT_REPRODUCED: { type: 'object' } },
  labels: { language: ['javascript', 'typescript'], 地区: '上海' },
  constraints: { max_concurrency: 2, budget_ms: 60_000, cost_level: 1 },
  negative_capabilities: ['no Windows', '不改测试'],
}

export const MANIFEST: Manifest = {
  agent_id: 'coder',
  key: KEYS.coder.publicKey.raw,
  network: NETWORK,
  serial: 3,
  issued_at: NOW,
  expires_at: NOW + 172_800_000,
  description: '',
  capabilities: [
    CAPABILITY,
    {
      ...CAPABILITY,
      name: 'fix-test@2',
      call_type: 'task',
      effects: 'once',
      errors: {},
      labels: {},
      constraints: {},
      negative_capabilities: [],
    },
  ],
}

export const PRESENCE: Presence = {
  agent_id: 'coder',
  key: KEYS.coder.publicKey.raw,
  network: NETWORK,
  epoch: NOW - 50_000,
  counter: 7,
  state: 'up',
  addresses: ['/ip4/127.0.0.1/tcp/4001'],
  capabilities: ['fix-test', 'fix-test@2'],
  load: 50,
  queue_depth: 3,
  success_rate_15m: 0.987,
  manifest_serial: 3,
}

export const INSTANCE: InstanceCertificate = {
  kind: 'instance',
  network: NETWORK,
  agent_id: 'coder',
  serial: 2,
  not_before: NOW - 1000,
  not_after: NOW + 1000,
  instance_key: KEYS['tester-a'].publicKey.raw,
}

export const ORGANISATION: OrganisationCertificate = {
  kind: 'organisation',
  network: NETWORK,
  agent_id: 'billing/ledger',
  serial: 1,
  not_before: NOW,
  not_after: NOW,
  agent_key: KEYS['billing/ledger'].publicKey.raw,
  team: 'finance',
  roles: ['auditor', 'writer'],
}

export const ENDORSEMENT: Endorsement = {
  network: NETWORK,
  endorser: 'pm',
  key: KEYS.pm.publicKey.raw,
  agent_id: 'coder',
  capability: 'fix-test@2',
  issued_at: NOW,
  expires_at: NOW + 86_400_000,
}

export const TEAM: TeamCertificate = {
  kind: 'team',
  network: NETWORK,
  serial: 1,
  not_before: NOW,
  not_after: NOW + 1000,
  team: 'finance',
  team_key: KEYS.reviewer.publicKey.raw,
  prefix: 'billing',
  roles: ['auditor'],
}

export const REVOCATION: Revocation = {
  network: NETWORK,
  agent_id: 'coder',
  key: KEYS['tester-a'].publicKey.fingerprint,
  serial: NOW,
  reason: '笔记本电脑被盗',
  signer: KEYS.coder.publicKey.raw,
}

/** The instance key of `coder` signs, with this beside it. */
export const BY_INSTANCE = [signCertificate(INSTANCE, KEYS.coder)]

/** What a document says, with its keys in base64url as they stand in it. */
export function fieldsOf(value: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).map(([field, one]) => [
      field,
      one instanceof Uint8Array
        ? toBase64url(one)
        : field === 'certificates' && (one as unknown[]).every((two) => two instanceof Uint8Array)
          ? (one as Uint8Array[]).map(toBase64url)
          : one,
    ]),
  )
}
