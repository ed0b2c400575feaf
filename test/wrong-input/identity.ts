import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { type SigningKey, signCertificate, signingKey, toBase64url, toFile } from '@hermes-peer/protocol'
import { certifyAgent, makeOrganisationKey, makeRevocation, makeTeamKey } from 'hermes-peer'
import { toPem } from '../../packages/peer/src/identity/key-file.ts'
import { type Case, type Edge, fileIn, type Scene, startWith } from './case.ts'

const keyOf = (name: string): SigningKey =>
  signingKey(new Uint8Array(createHash('sha256').update(`wrong input: ${name}`).digest()))
const own = keyOf('own')
const smallOrder = toBase64url(new Uint8Array([1, ...new Array(31).fill(0)]))

const certificate = (more: object = {}) =>
  toFile(
    signCertificate(
      {
        kind: 'organisation',
        network: 'default',
        agent_id: 'wrong',
        serial: 1,
        not_before: 0,
        not_after: 4_000_000_000_000,
        agent_key: own.publicKey.raw,
        team: 'ops',
        roles: [],
        ...more,
      },
      keyOf('acme'),
    ),
  )

/** A peer whose key is `own`, with that in its certificate file. */
const certified = (name: string, content: unknown, names: RegExp, more: Partial<Case> = {}): Case => ({
  name,
  code: 'INVALID_CERTIFICATE',
  names,
  remedy: /issued again/,
  run: ({ folder }) => {
    const text = typeof content === 'string' ? content : JSON.stringify(content)
    const path = fileIn(folder, 'own.cert', text)
    fileIn(folder, 'own.pem', toPem(own.seed))
    return startWith({ certificate: path, preset: 'none', journal: false }, folder)
  },
  ...more,
})

export const certificateEdge: Edge = {
  edge: 'certificate file',
  cases: [
    certified('empty', '', /certificate.*own\.cert.*JSON/),
    certified('truncated', JSON.stringify(certificate()).slice(0, -9), /certificate.*own\.cert.*JSON/),
    certified('of another form', { agents: [] }, /own\.cert.*document, signature/),
    certified(
      'with a document that is none',
      { document: 'AAAA', signature: 'AAAA' },
      /own\.cert.*document, signature/,
    ),
    certified('in Chinese', '这不是证书', /own\.cert.*JSON/),
    certified('for another agent', certificate({ agent_id: 'right' }), /own\.cert.*wrong.*right/),
    certified('for another network', certificate({ network: 'prod' }), /own\.cert.*prod.*default/),
    certified('for another key', certificate({ agent_key: keyOf('other').publicKey.raw }), /own\.cert.*another key/),
    certified('that has run out', certificate({ not_after: 1000 }), /own\.cert.*1970/),
    certified('that is not valid yet', certificate({ not_before: 3_900_000_000_000 }), /own\.cert.*2093/),
    certified('twice in one', [certificate(), certificate()], /own\.cert.*at most once/),
    certified('missing', '', /certificate.*missing\.cert/, {
      run: ({ folder }) => {
        fileIn(folder, 'missing.pem', toPem(own.seed))
        return startWith({ certificate: join(folder, 'missing.cert'), preset: 'none' }, folder)
      },
    }),
    certified('without its key', '', /identity.*alone\.pem/, {
      code: 'INVALID_KEY_FILE',
      remedy: /PEM/,
      run: ({ folder }) => {
        const path = fileIn(folder, 'alone.cert', JSON.stringify(certificate()))
        return startWith({ certificate: path, preset: 'none' }, folder)
      },
    }),
  ],
}

const org = (name: string, value: (scene: Scene) => string, names: RegExp): Case => ({
  name,
  code: 'INVALID_KEY_FILE',
  names,
  remedy: /base64url.*PEM/,
  run: (scene) => startWith({ trust: { org: value(scene) } }),
})

export const organisationKeyEdge: Edge = {
  edge: 'key of an organisation',
  cases: [
    org('missing', ({ folder }) => join(folder, 'acme.pub'), /trust\.org.*acme\.pub/),
    org('a folder', ({ folder }) => folder, /trust\.org/),
    org('no key', ({ folder }) => fileIn(folder, 'acme.pub', '组织密钥'), /trust\.org.*acme\.pub/),
    org('of small order', () => smallOrder, /trust\.org.*small order/),
    org('in hex', () => 'ab'.repeat(32), /trust\.org/),
    org('a fingerprint', () => own.publicKey.fingerprint, /trust\.org/),
  ],
}

const issue = (name: string, names: RegExp | string, run: Case['run'], more: Partial<Case> = {}): Case => ({
  name,
  code: 'INVALID_OPTION',
  names,
  run,
  ...more,
})

/** An organisation and a team under `ops`. */
function authority(folder: string) {
  const at = (name: string) => join(folder, name)
  makeOrganisationKey(at('acme.key'))
  makeTeamKey({ organisation: at('acme.key'), path: at('ops.key'), network: 'acme', team: 'ops', prefix: 'ops' })
  const agent = { issuer: at('ops.key'), network: 'acme', agentId: 'ops/a', team: 'ops', path: at('a.cert') }
  return { at, agent: { ...agent, key: toBase64url(own.publicKey.raw) } }
}

const certify = (name: string, names: string, more: object, code: Case['code'] = 'INVALID_OPTION'): Case =>
  issue(name, names, ({ folder }) => certifyAgent({ ...authority(folder).agent, ...more }), { code })

export const issuingEdge: Edge = {
  edge: 'issuing keys and certificates',
  cases: [
    certify('an agent outside the prefix', 'agentId', { agentId: 'billing/a' }),
    certify('another team', 'team', { team: 'billing' }),
    certify('a role that the team may not give', 'roles', { roles: ['admin'] }),
    certify('a life that is over', 'lifeMs', { lifeMs: 0 }),
    certify('a serial that is none', 'serial', { serial: 1.5 }),
    certify('a Cyrillic agent id', 'agentId', { agentId: 'ops/оps' }, 'INVALID_NAME'),
    certify('a team in Chinese', 'team', { team: '运维' }, 'INVALID_NAME'),
    certify('a role in upper case', 'roles', { roles: ['Admin'] }, 'INVALID_NAME'),
    certify('a key of small order', 'key', { key: smallOrder }, 'INVALID_KEY_FILE'),
    issue(
      'a key where there is one already',
      /path.*acme\.key/,
      ({ folder }) => {
        authority(folder)
        return makeOrganisationKey(join(folder, 'acme.key'))
      },
      { code: 'INVALID_KEY_FILE', remedy: /another path/ },
    ),
    issue('a revocation of what is no fingerprint', 'key', ({ folder }) => {
      const { at } = authority(folder)
      return makeRevocation({ signer: at('acme.key'), network: 'acme', agentId: 'a', key: '7c1d', reason: '' })
    }),
    issue('a reason that is too long', 'reason', ({ folder }) => {
      const { at } = authority(folder)
      const key = own.publicKey.fingerprint
      return makeRevocation({ signer: at('acme.key'), network: 'acme', agentId: 'a', key, reason: '长'.repeat(257) })
    }),
  ],
}

/** Users of JavaScript have no types. */
const wrongly = <T>(value: unknown): T => value as T

export const keyChangeEdge: Edge = {
  edge: 'a change of key, a revocation',
  cases: [
    issue('rotate with a text', 'files', ({ desk }) => desk.rotate(wrongly('./next.pem'))),
    issue('rotate without a certificate', 'files.certificate', ({ desk }) => desk.rotate(wrongly({ identity: 'x' }))),
    issue(
      'rotate to files that are not there',
      /next\.pem/,
      ({ desk, folder }) => {
        const path = join(folder, 'next.pem')
        return desk.rotate({ identity: path, certificate: `${path}.cert` })
      },
      { code: 'INVALID_KEY_FILE' },
    ),
    issue('revoke what is no fingerprint', 'key', ({ desk }) => desk.revoke({ key: '7c1d', reason: '' })),
    issue('revoke nothing', 'what', ({ desk }) => desk.revoke(wrongly(undefined))),
    issue('revoke without a reason', 'reason', ({ desk }) => desk.revoke(wrongly({ key: own.publicKey.fingerprint }))),
    issue(
      'revoke by a document that is none',
      'document, signature',
      ({ desk }) => desk.revoke({ document: 'AAAA', signature: 'AAAA' }),
      { code: 'MALFORMED' },
    ),
    issue(
      'revoke the key of another agent',
      /may not revoke/,
      ({ desk, folder }) => {
        const { at } = authority(folder)
        const key = own.publicKey.fingerprint
        return desk.revoke(
          makeRevocation({ signer: at('acme.key'), network: 'default', agentId: 'worker', key, reason: '' }),
        )
      },
      { code: 'NOT_ALLOWED' },
    ),
  ],
}
