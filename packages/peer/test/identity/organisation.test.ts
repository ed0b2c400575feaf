import { manualClock } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import { allowList } from '../../src/identity/allow-list.ts'
import { createKeyCheck } from '../../src/identity/key-check.ts'
import { organisation } from '../../src/identity/organisation.ts'
import { anyOf, type Claim } from '../../src/identity/trust.ts'
import { certificateOf, HOUR, notesInMemory, ORGANISATION, teamCertificate } from './organisation-support.ts'
import { caught, claim, keyNamed } from './support.ts'

const MINUTE = 60_000

function trusting(start = 1_800_000_000_000) {
  const clock = manualClock({ start })
  const trust = organisation({
    key: ORGANISATION.publicKey,
    network: 'default',
    clock,
    toleranceMs: 10 * MINUTE,
    keys: createKeyCheck(),
  })
  return { clock, trust, now: () => clock.now() }
}

const showing = (agentId: string, issued: readonly Uint8Array[], more: Partial<Claim> & { as?: string } = {}) =>
  claim(agentId, { issued, ...more })

describe('trust in an organisation', () => {
  it('admits whom it has certified, itself or through a team, in team and roles', () => {
    const { trust } = trusting()
    const direct = showing('billing/ledger', [certificateOf('billing/ledger', { team: 'finance', roles: ['auditor'] })])
    const byTeam = showing('ops/watch', [teamCertificate(), certificateOf('ops/watch', { by: 'ops key' })])
    for (const one of [direct, byTeam]) {
      expect(trust.judge(one)).toEqual({ admitted: true })
      expect(trust.membership?.(one.agentId), 'nothing is on record before it is proven').toBeUndefined()
      trust.proven?.(one)
    }
    expect(trust.membership?.('billing/ledger')).toEqual({ team: 'finance', roles: ['auditor'] })
    expect(trust.membership?.('ops/watch')).toEqual({ team: 'ops', roles: ['reader'] })
    expect(trust.known('billing/ledger')).toBe(keyNamed('billing/ledger').publicKey.fingerprint)
  })

  it.each<[string, string, Claim]>([
    ['no certificate', 'NOT_ALLOWED', showing('a', [])],
    ['that of another organisation', 'NOT_ALLOWED', showing('a', [certificateOf('a', { by: 'umbrella' })])],
    ['F-01 its own under another id', 'IDENTITY_MISMATCH', showing('b', [certificateOf('a')], { as: 'a' })],
    ['that of another key', 'IDENTITY_MISMATCH', showing('a', [certificateOf('a')], { as: 'b' })],
    ['one for another network', 'NOT_ALLOWED', showing('a', [certificateOf('a', { network: 'prod' })])],
    ['one that has run out', 'NOT_ALLOWED', showing('a', [certificateOf('a', { not_after: 1_000 })])],
    ['one that is not valid yet', 'NOT_ALLOWED', showing('a', [certificateOf('a', { not_before: 1_900_000_000_000 })])],
    [
      'a team outside its prefix',
      'NOT_ALLOWED',
      showing('a', [teamCertificate(), certificateOf('a', { by: 'ops key' })]),
    ],
    [
      'a team without its own certificate',
      'NOT_ALLOWED',
      showing('ops/a', [certificateOf('ops/a', { by: 'ops key' })]),
    ],
  ])('refuses %s: %s', (_, code, shown) => {
    const { trust } = trusting()
    expect(trust.judge(shown)).toMatchObject({ admitted: false, code })
    expect(caught(() => trust.proven?.(shown))).toMatchObject({ code })
    expect(trust.known(shown.agentId)).toBeUndefined()
  })

  it('F-32 refuses a second key under one agent id, and names both fingerprints', () => {
    const { trust } = trusting()
    const first = showing('a', [certificateOf('a')])
    trust.proven?.(first)
    const newcomer = showing('a', [certificateOf('a', { agent_key: keyNamed('b').publicKey.raw, serial: 99 })], {
      as: 'b',
    })
    const verdict = trust.judge(newcomer)
    expect(verdict).toMatchObject({ admitted: false, code: 'IDENTITY_MISMATCH' })
    const { reason } = verdict as { reason: string }
    for (const name of ['a', 'b']) expect(reason).toContain(keyNamed(name).publicKey.fingerprint)
    expect(trust.judge(first)).toEqual({ admitted: true })
  })

  it('takes another key once the first has run out or was revoked, and not before', async () => {
    const { trust, clock, now } = trusting()
    const { notes } = await notesInMemory()
    const revoked = new Set<string>()
    await trust.restore?.({ notes, revoked: (_, fingerprint) => (revoked.has(fingerprint) ? 'lost' : undefined) })
    const under = (as: string, agentId: string, not_after: number) =>
      showing(agentId, [certificateOf(agentId, { agent_key: keyNamed(as).publicKey.raw, not_after })], { as })
    trust.proven?.(under('old', 'a', now() + HOUR))
    trust.proven?.(under('old', 'b', now() + 100 * HOUR))
    await clock.timeline.advance(HOUR + 11 * MINUTE)
    expect(trust.judge(under('new', 'a', now() + 100 * HOUR))).toEqual({ admitted: true })
    expect(trust.judge(under('new', 'b', now() + 100 * HOUR))).toMatchObject({ code: 'IDENTITY_MISMATCH' })
    revoked.add(keyNamed('old').publicKey.fingerprint)
    expect(trust.judge(under('new', 'b', now() + 100 * HOUR))).toEqual({ admitted: true })
  })

  it('refuses an older certificate of the same key: a role that was taken away does not come back', () => {
    const { trust } = trusting()
    const before = showing('a', [certificateOf('a', { serial: 1, roles: ['admin'] })])
    trust.proven?.(before)
    trust.proven?.(showing('a', [certificateOf('a', { serial: 2, roles: [] })]))
    expect(trust.judge(before)).toMatchObject({ admitted: false, code: 'NOT_ALLOWED' })
    expect(trust.membership?.('a')).toEqual({ team: 'ops', roles: [] })
  })

  it('refuses what a revoked team has certified', async () => {
    const { trust } = trusting()
    const { notes } = await notesInMemory()
    const gone = keyNamed('ops key').publicKey.fingerprint
    await trust.restore?.({ notes, revoked: (id, key) => (id === 'ops' && key === gone ? 'stolen' : undefined) })
    const shown = showing('ops/a', [teamCertificate(), certificateOf('ops/a', { by: 'ops key' })])
    expect(trust.judge(shown)).toMatchObject({ admitted: false, code: 'NOT_ALLOWED' })
  })

  it('remembers across a restart whose key is whose', async () => {
    const { notes, stored } = await notesInMemory()
    const first = trusting().trust
    await first.restore?.({ notes, revoked: () => undefined })
    first.proven?.(showing('a', [certificateOf('a')]))
    await stored()
    const second = trusting().trust
    await second.restore?.({ notes, revoked: () => undefined })
    expect(second.known('a')).toBe(keyNamed('a').publicKey.fingerprint)
    expect(second.membership?.('a')).toEqual({ team: 'ops', roles: ['reader'] })
    const other = showing('a', [certificateOf('a', { agent_key: keyNamed('b').publicKey.raw })], { as: 'b' })
    expect(second.judge(other)).toMatchObject({ code: 'IDENTITY_MISMATCH' })
  })

  it('beside an allow list: whoever is listed has what the list says, and no role of the organisation', () => {
    const { trust } = trusting()
    const both = anyOf([allowList([{ agent_id: 'a', fingerprint: keyNamed('a').publicKey.fingerprint }]), trust])
    const listed = showing('a', [certificateOf('a', { roles: ['admin'] })])
    both.proven?.(listed)
    expect(both.judge(listed)).toEqual({ admitted: true })
    expect(both.membership?.('a')).toEqual({ roles: [] })
    const certified = showing('b', [certificateOf('b')])
    both.proven?.(certified)
    expect(both.membership?.('b')).toEqual({ team: 'ops', roles: ['reader'] })
    expect(both.mayRevoke?.(ORGANISATION.publicKey.raw)).toBe(true)
    expect(both.mayRevoke?.(keyNamed('a').publicKey.raw)).toBe(false)
  })
})
