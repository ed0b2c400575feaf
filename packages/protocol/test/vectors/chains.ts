import {
  type Certificate,
  encodeJson,
  type InstanceCertificate,
  type OrganisationCertificate,
  type SignedDocument,
  signCertificate,
  signDocument,
  type TeamCertificate,
  toBase64url,
  toHex,
} from '../../src/index.ts'
import { KEYS, type Name, NETWORK, NOW, type Vector } from './scene.ts'

/** Clocks may differ by this. */
const TOLERANCE_MS = 600_000
const LIFE = { network: NETWORK, serial: 4, not_before: NOW - 1000, not_after: NOW + 1000 }
const WHO = 'billing/ledger'

type Changes<C> = Partial<C> & { by?: Name }

const sign = <C extends Certificate>(base: C, issuer: Name, { by, ...changes }: Changes<C> = {}): SignedDocument =>
  signCertificate({ ...base, ...changes }, KEYS[by ?? issuer])

const TEAM: TeamCertificate = {
  kind: 'team',
  ...LIFE,
  team: 'finance',
  team_key: KEYS.pm.publicKey.raw,
  prefix: 'billing',
  roles: ['auditor', 'writer'],
}
const ORGANISATION: OrganisationCertificate = {
  kind: 'organisation',
  agent_id: WHO,
  ...LIFE,
  agent_key: KEYS[WHO].publicKey.raw,
  team: 'finance',
  roles: ['writer'],
}
const INSTANCE: InstanceCertificate = {
  kind: 'instance',
  agent_id: WHO,
  ...LIFE,
  serial: 9,
  instance_key: KEYS['tester-a'].publicKey.raw,
}

const team = (changes?: Changes<TeamCertificate>) => sign(TEAM, 'organisation', changes)
const direct = (changes?: Changes<OrganisationCertificate>) => sign(ORGANISATION, 'organisation', changes)
const delegated = (changes?: Changes<OrganisationCertificate>) => sign(ORGANISATION, 'pm', changes)
const instance = (changes?: Changes<InstanceCertificate>) => sign(INSTANCE, WHO, changes)

const chain = (name: string, certificates: readonly Uint8Array[], more: Vector = {}): Vector => ({
  name,
  agent_id: WHO,
  key: toHex(KEYS[WHO].publicKey.raw),
  now: NOW,
  certificates: certificates.map(toHex),
  ...more,
})

const says = (signer: Name, serial: number, organisation?: { team: string; roles: readonly string[] }): Vector => ({
  signer: KEYS[signer].publicKey.fingerprint,
  serial,
  ...(organisation ? { organisation } : {}),
})

const WRITER = { team: 'finance', roles: ['writer'] }

function accepted(): Vector[] {
  return [
    chain('the agent key itself', [], says(WHO, 0)),
    chain('an instance key', [instance()], says('tester-a', 9)),
    chain('the organisation', [direct()], says(WHO, 0, WRITER)),
    chain('the organisation and an instance key', [direct(), instance()], says('tester-a', 9, WRITER)),
    chain('a team', [team(), delegated()], says(WHO, 0, WRITER)),
    chain('a team and an instance key', [team(), delegated(), instance()], says('tester-a', 9, WRITER)),
    chain('a team whose prefix is the whole id', [team({ prefix: WHO }), delegated()], says(WHO, 0, WRITER)),
    chain('without roles', [direct({ roles: [] })], says(WHO, 0, { team: 'finance', roles: [] })),
    chain('not valid yet, within the tolerance', [instance()], {
      ...says('tester-a', 9),
      now: LIFE.not_before - TOLERANCE_MS,
    }),
    chain('run out, within the tolerance', [instance()], {
      ...says('tester-a', 9),
      now: LIFE.not_after + TOLERANCE_MS,
    }),
  ]
}

/** The point 1, of order 1. */
const SMALL = Uint8Array.from({ length: 32 }, (_, index) => (index === 0 ? 1 : 0))

function smallOrder(): SignedDocument {
  return signDocument('certificate', { ...INSTANCE, instance_key: toBase64url(SMALL) }, KEYS[WHO])
}

function refused(): Vector[] {
  const no = (code: string, name: string, certificates: readonly Uint8Array[], more: Vector = {}): Vector =>
    chain(name, certificates, { code, ...more })
  const long = (letter: string) => Array.from({ length: 32 }, (_, index) => `${letter.repeat(40)}-${index}`)
  return [
    no('IDENTITY_MISMATCH', 'own certificate under another id', [instance()], { agent_id: 'billing/other' }),
    no('IDENTITY_MISMATCH', 'own certificate of the organisation under another id', [direct()], {
      agent_id: 'billing/other',
    }),
    no('IDENTITY_MISMATCH', 'the certificate of another key', [direct({ agent_key: KEYS.stranger.publicKey.raw })]),
    no('WRONG_NETWORK', 'an instance of another network', [instance({ network: 'prod' })]),
    no('WRONG_NETWORK', 'an organisation certificate of another network', [direct({ network: 'prod' })]),
    no('WRONG_NETWORK', 'a team of another network', [team({ network: 'prod' }), delegated()]),
    no('BAD_SIGNATURE', 'an instance that a stranger signed', [instance({ by: 'stranger' })]),
    no('BAD_SIGNATURE', 'an instance that signed itself', [instance({ by: 'tester-a' })]),
    no('BAD_SIGNATURE', 'an instance that the organisation signed', [direct(), instance({ by: 'organisation' })]),
    no('BAD_SIGNATURE', 'another organisation', [direct({ by: 'stranger' })]),
    no('BAD_SIGNATURE', 'a team that named itself', [team({ by: 'pm' }), delegated()]),
    no('BAD_SIGNATURE', 'a team certificate left out', [delegated()]),
    no('BAD_SIGNATURE', 'signed by another team', [team(), delegated({ by: 'reviewer' })]),
    no('NOT_ALLOWED', 'outside the prefix', [team({ prefix: 'sales' }), delegated()]),
    no('NOT_ALLOWED', 'a prefix that ends within a segment', [team({ prefix: 'bill' }), delegated()]),
    no('NOT_ALLOWED', 'another team', [team(), delegated({ team: 'sales' })]),
    no('NOT_ALLOWED', 'a role that the team may not give', [team(), delegated({ roles: ['writer', 'admin'] })]),
    no('NOT_ALLOWED', 'stripped of the organisation', [instance()], { demands: true }),
    no('NOT_ALLOWED', 'nothing at all', [], { demands: true }),
    no('EXPIRED', 'an instance before its time', [instance()], { now: LIFE.not_before - TOLERANCE_MS - 1 }),
    no('EXPIRED', 'an instance after its time', [instance()], { now: LIFE.not_after + TOLERANCE_MS + 1 }),
    no('EXPIRED', 'an organisation certificate after its time', [direct()], { now: LIFE.not_after + TOLERANCE_MS + 1 }),
    no('EXPIRED', 'a team after its time', [team({ not_after: NOW - TOLERANCE_MS - 1 }), delegated()]),
    no('MALFORMED', 'the instance before the organisation', [instance(), direct()]),
    no('MALFORMED', 'the team last', [delegated(), team()]),
    no('MALFORMED', 'two instances', [instance(), instance()]),
    no('MALFORMED', 'two organisations', [direct(), direct()]),
    no('MALFORMED', 'a team alone', [team()]),
    no('MALFORMED', 'a team and an instance', [team(), instance()]),
    no('MALFORMED', 'four of them', [team(), delegated(), instance(), instance()]),
    no('LIMIT_EXCEEDED', 'more than 5 KiB together', [
      team({ roles: long('a') }),
      delegated({ roles: long('a') }),
      signDocument(
        'certificate',
        { ...INSTANCE, instance_key: toBase64url(INSTANCE.instance_key), more: 'x'.repeat(1500) },
        KEYS[WHO],
      ),
    ]),
    no('BAD_KEY', 'an instance key of small order', [smallOrder()]),
    no('BAD_KEY', 'an agent key of small order', [instance()], { key: toHex(SMALL) }),
    no('MALFORMED', 'no certificate', [signDocument('certificate', [], KEYS[WHO])]),
    no('INVALID_PAYLOAD', 'no JSON', [
      new Uint8Array([...encodeJson('x').subarray(0, 0), 1, 0x78, ...new Uint8Array(64)]),
    ]),
  ]
}

export function chainVectors(): Vector {
  return {
    about:
      'Chains of certificates. Whoever is shown has `agent_id`, `key` (the agent key) and `certificates`; the key that signs for it is found first, then, where there is a certificate of the organisation (or `demands` says that there must be), it is checked with the key `organisation`. `signer` is the fingerprint of the key that signs, `serial` that of its certificate (0: none), `organisation` what the organisation says. Judged at `now`, with `tolerance_ms` at both ends.',
    network: NETWORK,
    tolerance_ms: TOLERANCE_MS,
    organisation: toHex(KEYS.organisation.publicKey.raw),
    accepted: accepted(),
    refused: refused(),
  }
}
