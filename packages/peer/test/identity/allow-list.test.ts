import { mkdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { toBase64url } from '@hermes-peer/protocol'
import { manualClock } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import { allowList, allowListFile, parseAllowList } from '../../src/identity/allow-list.ts'
import { caught, claim, keyNamed, temporaryFolder } from './support.ts'

const keyOf = (name: string) => toBase64url(keyNamed(name).publicKey.raw)
const fingerprintOf = (name: string) => keyNamed(name).publicKey.fingerprint

describe('an allow list', () => {
  const trust = allowList([
    { agent_id: 'reviewer', key: keyOf('reviewer') },
    { agent_id: 'billing/ledger', fingerprint: fingerprintOf('billing/ledger') },
  ])

  it('admits each agent with its key, given whole or as a fingerprint', () => {
    expect(trust.judge(claim('reviewer'))).toEqual({ admitted: true })
    expect(trust.judge(claim('billing/ledger', { met: 'outbound', address: '/ip4/10.0.0.9/tcp/1' }))).toEqual({
      admitted: true,
    })
    expect(trust.known('reviewer')).toBe(fingerprintOf('reviewer'))
  })

  it('F-01 refuses a listed name under another key, naming both fingerprints', () => {
    const verdict = trust.judge(claim('reviewer', { as: 'impostor' }))
    if (verdict.admitted) throw new Error('admitted')
    expect(verdict.code).toBe('IDENTITY_MISMATCH')
    expect(verdict.reason).toContain(fingerprintOf('reviewer'))
    expect(verdict.reason).toContain(fingerprintOf('impostor'))
  })

  it('refuses who is not listed, also when the user gave the address', () => {
    expect(trust.judge(claim('stranger', { met: 'outbound', chosen: true }))).toMatchObject({ code: 'NOT_ALLOWED' })
    expect(trust.known('stranger')).toBeUndefined()
  })

  it('may be empty: then nobody is admitted', () => {
    expect(allowList([]).judge(claim('reviewer'))).toMatchObject({ admitted: false, code: 'NOT_ALLOWED' })
  })
})

describe('an allow list file', () => {
  function listed(text: string) {
    const path = join(temporaryFolder(), 'trust.json')
    const clock = manualClock()
    const reports: string[] = []
    let touched = 0
    const write = (content: string) => {
      writeFileSync(path, content)
      // File times may be coarse: each writing gets one of its own.
      utimesSync(path, 1000 + ++touched, 1000 + touched)
    }
    write(text)
    const trust = allowListFile(path, { monotonic: () => clock.monotonic(), report: (line) => reports.push(line) })
    const admits = (agentId: string) => trust.judge(claim(agentId)).admitted
    return { path, clock, reports, write, trust, admits }
  }
  const fileOf = (...names: string[]) =>
    JSON.stringify({ agents: names.map((agent_id) => ({ agent_id, key: keyOf(agent_id) })) }, null, 2)

  it.each([
    ['LF', (text: string) => text],
    ['CRLF', (text: string) => text.replaceAll('\n', '\r\n')],
    ['a byte order mark', (text: string) => `\uFEFF${text}`],
    ['both', (text: string) => `\uFEFF${text.replaceAll('\n', '\r\n')}`],
  ])('F-45 with %s says the same', (_, change) => {
    expect(listed(change(fileOf('reviewer'))).admits('reviewer')).toBe(true)
  })

  it('is read again when it has changed, at most once a second', async () => {
    const { clock, write, admits, reports } = listed(fileOf('a'))
    write(fileOf('a', 'b'))
    expect(admits('b'), 'within the second').toBe(false)
    await clock.timeline.advance('1s')
    expect(admits('b')).toBe(true)
    write(fileOf('b'))
    await clock.timeline.advance('1s')
    expect(admits('a'), 'no longer listed').toBe(false)
    expect(reports).toEqual([])
  })

  it.each([
    ['truncated', (text: string) => text.slice(0, -20)],
    ['with an entry that is wrong', () => fileOf('b').replace('"b"', '"B"')],
    ['empty', () => ''],
  ])('that becomes %s keeps the old list and says so once', async (_, spoil) => {
    const { clock, write, admits, reports, path } = listed(fileOf('a'))
    write(spoil(fileOf('a', 'b')))
    await clock.timeline.advance('1s')
    expect(admits('a')).toBe(true)
    expect(admits('b')).toBe(false)
    await clock.timeline.advance('5s')
    expect(admits('a')).toBe(true)
    expect(reports).toHaveLength(1)
    expect(reports[0]).toContain(path)
  })

  it('that vanishes keeps the old list, and is used again when it is back', async () => {
    const { clock, write, admits, reports, path } = listed(fileOf('a'))
    rmSync(path)
    await clock.timeline.advance('1s')
    expect(admits('a')).toBe(true)
    expect(reports).toHaveLength(1)
    write(fileOf('c'))
    await clock.timeline.advance('1s')
    expect(admits('c')).toBe(true)
    expect(admits('a')).toBe(false)
  })

  it('that becomes a folder keeps the old list', async () => {
    const { clock, admits, reports, path } = listed(fileOf('a'))
    rmSync(path)
    mkdirSync(path)
    await clock.timeline.advance('1s')
    expect(admits('a')).toBe(true)
    expect(reports.length).toBeGreaterThan(0)
  })

  it('must be there and right the first time', () => {
    expect(caught(() => listed('{"agents": [')).code).toBe('INVALID_TRUST_FILE')
    const options = { monotonic: () => 0, report: () => {} }
    const missing = join(temporaryFolder(), 'missing.json')
    const error = caught(() => allowListFile(missing, options))
    expect(error.code).toBe('INVALID_TRUST_FILE')
    expect(error.message).toContain(missing)
  })
})

describe('reading an allow list', () => {
  const identity = toBase64url(new Uint8Array([1, ...new Array(31).fill(0)]))
  it.each([
    ['a list without a name', [], 'agents'],
    ['null', null, 'agents'],
    ['agents that are no list', { agents: { a: 1 } }, 'agents'],
    ['an entry that is a text', { agents: ['a'] }, 'agents[0]'],
    ['an entry without id', { agents: [{ key: keyOf('a') }] }, 'agents[0].agent_id'],
    ['upper case', { agents: [{ agent_id: 'OPS', key: keyOf('a') }] }, 'agents[0].agent_id'],
    ['a Cyrillic letter', { agents: [{ agent_id: 'оps', key: keyOf('a') }] }, 'agents[0].agent_id'],
    ['a trailing space', { agents: [{ agent_id: 'ops ', key: keyOf('a') }] }, 'agents[0].agent_id'],
    ['Chinese', { agents: [{ agent_id: '审查员', key: keyOf('a') }] }, 'agents[0].agent_id'],
    ['a path', { agents: [{ agent_id: '../ops', key: keyOf('a') }] }, 'agents[0].agent_id'],
    ['neither key nor fingerprint', { agents: [{ agent_id: 'a' }] }, 'agents[0]'],
    ['a key that is too short', { agents: [{ agent_id: 'a', key: keyOf('a').slice(2) }] }, 'agents[0].key'],
    ['a key in hex', { agents: [{ agent_id: 'a', key: 'ab'.repeat(32) }] }, 'agents[0].key'],
    ['a key of small order', { agents: [{ agent_id: 'a', key: identity }] }, 'agents[0].key'],
    ['a key that is a number', { agents: [{ agent_id: 'a', key: 5 }] }, 'agents[0].key'],
    [
      'a fingerprint in upper case',
      { agents: [{ agent_id: 'a', fingerprint: fingerprintOf('a').toUpperCase() }] },
      'agents[0].fingerprint',
    ],
    [
      'a fingerprint without prefix',
      { agents: [{ agent_id: 'a', fingerprint: fingerprintOf('a').slice(7) }] },
      'agents[0].fingerprint',
    ],
    [
      'a fingerprint of another key',
      { agents: [{ agent_id: 'a', key: keyOf('a'), fingerprint: fingerprintOf('b') }] },
      'agents[0]',
    ],
    ['a team in upper case', { agents: [{ agent_id: 'a', key: keyOf('a'), team: 'Finance' }] }, 'agents[0].team'],
    ['a team that is a list', { agents: [{ agent_id: 'a', key: keyOf('a'), team: ['finance'] }] }, 'agents[0].team'],
    ['a role as text', { agents: [{ agent_id: 'a', key: keyOf('a'), roles: 'clerk' }] }, 'agents[0].roles'],
    ['a Chinese role', { agents: [{ agent_id: 'a', key: keyOf('a'), roles: ['会计'] }] }, 'agents[0].roles'],
    [
      'more roles than it may have',
      { agents: [{ agent_id: 'a', key: keyOf('a'), roles: new Array(33).fill('clerk') }] },
      'agents[0].roles',
    ],
    [
      'one id twice',
      {
        agents: [
          { agent_id: 'a', key: keyOf('a') },
          { agent_id: 'a', key: keyOf('b') },
        ],
      },
      'agents[1].agent_id',
    ],
  ])('refuses %s and names the place', (_, value, field) => {
    const error = caught(() => parseAllowList(value, 'trust.json'))
    expect(error.code).toBe('INVALID_TRUST_FILE')
    expect(error.details.field).toBe(field)
    expect(error.message).toContain(`trust.json: ${field}`)
    // Names of others reach terminals only as ASCII.
    expect(error.message).toMatch(/^[\x20-\x7e]*$/)
  })

  it('gives fingerprint, team and roles of each agent', () => {
    const agents = parseAllowList(
      {
        agents: [
          { agent_id: 'a', key: keyOf('a') },
          { agent_id: 'b', fingerprint: fingerprintOf('b'), team: 'finance', roles: ['approver', 'clerk'] },
        ],
      },
      'x',
    )
    expect([...agents]).toEqual([
      ['a', { fingerprint: fingerprintOf('a'), membership: { roles: [] } }],
      ['b', { fingerprint: fingerprintOf('b'), membership: { team: 'finance', roles: ['approver', 'clerk'] } }],
    ])
  })
})
