import { createPublicKey } from 'node:crypto'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fromFile, kindsOf, openChain, openIssued, openRevocation, publicKey } from '@hermes-peer/protocol'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { DEFAULTS } from '../../src/defaults.ts'
import {
  certifyAgent,
  certifyInstance,
  makeOrganisationKey,
  makeRevocation,
  makeTeamKey,
} from '../../src/identity/authority.ts'
import { readCertificateFile } from '../../src/identity/certificate-file.ts'
import { loadKey, loadOrCreateKey } from '../../src/identity/key-file.ts'
import { instanceFile, loadOwnKeys, nextInstance } from '../../src/identity/own-keys.ts'
import { readPublicKey } from '../../src/identity/public-key-file.ts'
import { systemRandom } from '../../src/random.ts'
import { caught, temporaryFolder } from './support.ts'

const clock = systemClock()
const random = systemRandom()
const judging = (network = 'default') => ({ network, now: clock.now(), toleranceMs: 0 })
const mode = (path: string) => statSync(path).mode & 0o777

/** An organisation, a team under `ops`, and the key of an agent, as files. */
function files() {
  const folder = temporaryFolder()
  const at = (name: string) => join(folder, name)
  const organisation = makeOrganisationKey(at('acme.key'))
  const team = makeTeamKey({
    organisation: at('acme.key'),
    path: at('ops.key'),
    network: 'default',
    team: 'ops',
    prefix: 'ops',
    roles: ['reader'],
  })
  const agent = loadOrCreateKey(at('agent.pem'), random).publicKey
  const certify = (more: Partial<Parameters<typeof certifyAgent>[0]> = {}) =>
    certifyAgent({
      issuer: at('acme.key'),
      network: 'default',
      agentId: 'ops/a',
      key: at('agent.pem'),
      team: 'ops',
      roles: ['reader'],
      path: at('agent.cert'),
      ...more,
    })
  return { at, organisation, team, agent, certify }
}

describe('keys and certificates as files', () => {
  it('are made with private halves of mode 0600, and public ones in the usual form', () => {
    const { at, organisation } = files()
    for (const name of ['acme.key', 'ops.key']) expect(mode(at(name)), name).toBe(0o600)
    const { x } = createPublicKey(readFileSync(at('acme.key.pub'), 'utf8')).export({ format: 'jwk' })
    expect(x).toBe(organisation.key)
    for (const given of [organisation.key, at('acme.key.pub'), at('acme.key')]) {
      expect(readPublicKey(given, 'trust.org').fingerprint).toBe(organisation.fingerprint)
    }
  })

  it('of an agent lead to the organisation, directly and through a team', () => {
    const { at, organisation, agent, certify } = files()
    const root = readPublicKey(organisation.key, 'trust.org')
    for (const issuer of ['acme.key', 'ops.key']) {
      certify({ issuer: at(issuer) })
      const { key, certificates } = readCertificateFile(at('agent.cert'), 'certificate')
      expect(key?.fingerprint).toBe(agent.fingerprint)
      const shown = { agent_id: 'ops/a', key: agent.raw, certificates }
      const { issued } = openChain(shown, judging())
      expect(openIssued({ ...shown, issued }, root, judging())).toMatchObject({
        organisation: { team: 'ops', roles: ['reader'] },
      })
    }
  })

  it('of a team are refused for what it may not certify, before anybody sees them', () => {
    const { at, certify } = files()
    const issuer = at('ops.key')
    for (const [more, field] of [
      [{ agentId: 'billing/a' }, 'agentId'],
      [{ agentId: 'opsx' }, 'agentId'],
      [{ team: 'billing' }, 'team'],
      [{ roles: ['reader', 'admin'] }, 'roles'],
      [{ network: 'prod' }, 'network'],
      [{ issuerCertificate: at('agent.cert') }, 'issuerCertificate'],
    ] as const) {
      certify()
      const { code, details } = caught(() => certify({ issuer, ...more }))
      expect({ code, field: details.field }).toEqual({ code: 'INVALID_OPTION', field })
    }
  })

  it('are never written over', () => {
    const { at } = files()
    expect(caught(() => makeOrganisationKey(at('acme.key')))).toMatchObject({ code: 'INVALID_KEY_FILE' })
  })

  it('of an instance are made where the agent key is', () => {
    const { at, agent, certify } = files()
    certify()
    const options = { agentKey: at('agent.pem'), network: 'default', agentId: 'ops/a', certificate: at('agent.cert') }
    const made = certifyInstance({ ...options, path: at('instance.pem') })
    const { key, certificates } = readCertificateFile(at('instance.pem.cert'), 'certificate')
    expect(key?.fingerprint).toBe(agent.fingerprint)
    expect(kindsOf(certificates)).toEqual(['organisation', 'instance'])
    const { signer, instance } = openChain({ agent_id: 'ops/a', key: agent.raw, certificates }, judging())
    expect(signer.fingerprint).toBe(made.fingerprint)
    expect((instance?.not_after ?? 0) - (instance?.not_before ?? 0)).toBe(DEFAULTS.instanceLifeMs)
  })

  it('of a revocation say who signed it, and which key it is about', () => {
    const { at, agent, certify } = files()
    certify()
    const key = agent.fingerprint
    const reason = '笔记本电脑被盗'
    const options = { signer: at('agent.pem'), certificate: at('agent.cert'), network: 'default', agentId: 'ops/a' }
    const revocation = openRevocation(fromFile(makeRevocation({ ...options, key, reason })))
    expect(revocation).toMatchObject({ agent_id: 'ops/a', key, reason, certificates: [expect.any(Uint8Array)] })
    expect(publicKey(revocation.signer).fingerprint).toBe(key)
    for (const bad of [
      { key: 'ab', reason },
      { key, reason: 'x'.repeat(257) },
    ]) {
      expect(caught(() => makeRevocation({ ...options, ...bad })).code).toBe('INVALID_OPTION')
    }
  })
})

describe('the keys that a peer runs under', () => {
  const settings = (more: { certificate?: string; agentId?: string; network?: string } = {}) => ({
    agentId: 'ops/a',
    network: 'default',
    certificate: undefined,
    tunables: DEFAULTS,
    ...more,
  })

  it('are the agent key, then that of the last rotation, found again after a restart', () => {
    const { at, agent } = files()
    const options = { settings: settings(), keyFile: at('agent.pem'), clock, random }
    const first = loadOwnKeys(options)
    expect([first.key.publicKey.fingerprint, first.certificates]).toEqual([agent.fingerprint, []])
    const next = nextInstance(first, 1, options)
    expect(mode(instanceFile(at('agent.pem')))).toBe(0o600)
    const again = loadOwnKeys(options)
    expect(again.key.publicKey.fingerprint).toBe(next.key.publicKey.fingerprint)
    expect(again.agentKey.fingerprint).toBe(agent.fingerprint)
    expect(again.agentSigner).toBeDefined()
  })

  it('are renewed at the start when their certificate has run out while nobody ran', () => {
    const { at } = files()
    const options = { settings: settings(), keyFile: at('agent.pem'), clock, random }
    const next = nextInstance(loadOwnKeys(options), 1, options)
    const later = { ...clock, now: () => clock.now() + DEFAULTS.instanceLifeMs }
    const again = loadOwnKeys({ ...options, clock: later })
    expect(again.key.publicKey.fingerprint).not.toBe(next.key.publicKey.fingerprint)
    const shown = { agent_id: 'ops/a', key: again.agentKey.raw, certificates: again.certificates }
    expect(openChain(shown, { ...judging(), now: later.now() }).instance?.serial).toBe(2)
  })

  it.each<[string, string]>([
    ['truncated', '{"private_key": "-----BEG'],
    ['empty', ''],
    ['of another form', '{"key": 1}'],
  ])('are not guessed at when the file of the last rotation is %s', (_, content) => {
    const { at } = files()
    writeFileSync(instanceFile(at('agent.pem')), content)
    const options = { settings: settings(), keyFile: at('agent.pem'), clock, random }
    const error = caught(() => loadOwnKeys(options))
    expect(error).toMatchObject({ code: 'INVALID_CERTIFICATE', details: { field: 'identity' } })
    expect(error.message).toContain('agent.pem.instance')
  })

  it('with a certificate must be the ones that it is for', () => {
    const { at, certify } = files()
    certify()
    loadOrCreateKey(at('other.pem'), random)
    const load = (keyFile: string, more: Parameters<typeof settings>[0] = {}) =>
      loadOwnKeys({
        settings: settings({ certificate: at('agent.cert'), ...more }),
        keyFile: at(keyFile),
        clock,
        random,
      })
    expect(load('agent.pem').certificates).toHaveLength(1)
    for (const [keyFile, more] of [
      ['other.pem', {}],
      ['agent.pem', { agentId: 'ops/b' }],
      ['agent.pem', { network: 'prod' }],
    ] as const) {
      expect(
        caught(() => load(keyFile, more)),
        JSON.stringify([keyFile, more]),
      ).toMatchObject({
        code: 'INVALID_CERTIFICATE',
        details: { field: 'certificate' },
      })
    }
    // With a certificate no key is made by the way: it would be the wrong one.
    expect(caught(() => load('missing.pem')).code).toBe('INVALID_KEY_FILE')
    expect(JSON.parse(readFileSync(at('agent.cert'), 'utf8'))).toMatchObject({
      certificates: [{ document: expect.any(String), signature: expect.any(String) }],
    })
    expect(loadKey(at('agent.pem')).publicKey.fingerprint).toBe(load('agent.pem').agentKey.fingerprint)
  })
})
