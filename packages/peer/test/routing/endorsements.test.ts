import { type Endorsement, type Manifest, signEndorsement, toBase64url } from '@hermes-peer/protocol'
import { manualClock } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import { createKeyCheck } from '../../src/identity/key-check.ts'
import { createEndorsers } from '../../src/routing/endorsements.ts'
import { keyNamed } from '../directory/support.ts'
import { named, provider, routing } from './scene.ts'

const auditor = keyNamed('auditor')
const owner = keyNamed('owner')
const coder = keyNamed('coder')
const HOUR = 60 * 60 * 1000

function scene(named: readonly string[] = ['auditor', 'owner']) {
  const clock = manualClock()
  const record = new Map([
    ['auditor', auditor.publicKey.fingerprint],
    ['owner', owner.publicKey.fingerprint],
    ['coder', coder.publicKey.fingerprint],
  ])
  let checks = 0
  const check = createKeyCheck()
  const endorsers = createEndorsers({
    networkName: 'test',
    named,
    known: (agentId) => record.get(agentId),
    keys: (raw) => {
      checks++
      return check(raw)
    },
    clock,
  })
  const endorsed = (changes: Partial<Endorsement> = {}, key = auditor): string =>
    toBase64url(
      signEndorsement(
        {
          network: 'test',
          endorser: 'auditor',
          key: key.publicKey.raw,
          agent_id: 'coder',
          capability: 'fix',
          issued_at: clock.now(),
          expires_at: clock.now() + HOUR,
          ...changes,
        },
        key,
      ),
    )
  const manifest = (...endorsements: string[]) => ({ agent_id: 'coder', endorsements }) as unknown as Manifest
  return { clock, endorsers, endorsed, manifest, checks: () => checks }
}

describe('endorsements', () => {
  it('count for the capability they name, once for each endorser', () => {
    const { endorsers, endorsed, manifest } = scene()
    const two = manifest(endorsed(), endorsed(), endorsed({ endorser: 'owner', key: owner.publicKey.raw }, owner))
    expect(endorsers(two, 'fix')).toEqual(['auditor', 'owner'])
    expect(endorsers(two, 'fix@2')).toEqual([])
    expect(endorsers(manifest(), 'fix')).toEqual([])
  })

  it('end when they expire, and are read once', () => {
    const { clock, endorsers, endorsed, manifest, checks } = scene()
    const one = manifest(endorsed())
    expect(endorsers(one, 'fix')).toEqual(['auditor'])
    clock.jumpWall(HOUR - 1)
    expect(endorsers(one, 'fix')).toEqual(['auditor'])
    clock.jumpWall(1)
    expect(endorsers(one, 'fix')).toEqual([])
    expect(checks()).toBe(1)
  })

  it.each<[string, (s: ReturnType<typeof scene>) => string]>([
    ['another agent', (s) => s.endorsed({ agent_id: 'tester' })],
    ['another network', (s) => s.endorsed({ network: 'other' })],
    ['a key that is not on record for the endorser', (s) => s.endorsed({ key: owner.publicKey.raw }, owner)],
    ['the agent itself', (s) => s.endorsed({ endorser: 'coder', key: coder.publicKey.raw }, coder)],
    ['somebody of whom no key is known', (s) => s.endorsed({ endorser: 'stranger', key: owner.publicKey.raw }, owner)],
    ['a signature that does not hold', (s) => `${s.endorsed().slice(0, -4)}AAAA`],
    ['no document', () => 'AAAA'],
    ['no base64url', () => '不是'],
  ])('do not count when they are of %s, and spoil no others', (_, wrong) => {
    const s = scene(['auditor', 'owner', 'coder', 'stranger'])
    const right = s.endorsed({ endorser: 'owner', key: owner.publicKey.raw }, owner)
    expect(s.endorsers(s.manifest(wrong(s)), 'fix')).toEqual([])
    expect(s.endorsers(s.manifest(wrong(s), right), 'fix')).toEqual(['owner'])
  })

  it('of agents whose word does not count here are not even read', () => {
    const { endorsers, endorsed, manifest, checks } = scene([])
    expect(endorsers(manifest(endorsed()), 'fix')).toEqual([])
    expect(checks()).toBe(0)
  })

  it('put an agent before its equals, and say so', async () => {
    const entries = [provider('plain'), provider('vouched')]
    const { rank } = routing(entries, 1, undefined, ({ agent_id }) => (agent_id === 'vouched' ? ['auditor'] : []))
    const ranked = await rank()
    expect(named(ranked)).toEqual(['vouched', 'plain'])
    expect(ranked[0]?.reasons).toContain('endorsed by auditor')
    expect((ranked[0]?.score ?? 0) - (ranked[1]?.score ?? 0)).toBeCloseTo(0.1, 10)
  })
})

describe('a promise of a manifest', () => {
  const promising = (p99Ms: number) => provider(`p${p99Ms}`, { offers: [{ name: 'work', p99Ms }] })

  it('is held against an SLA while too little has been measured', async () => {
    const { rank, measurements } = routing([promising(200), promising(900), provider('silent')])
    const left = async () =>
      (await rank({ sla: { p99Ms: 500 } }))
        .filter(({ usable }) => !usable)
        .map(({ agentId, reasons }) => [agentId, reasons[0]])
    expect(await left()).toEqual([['p900', 'promises a p99 of 900 ms, 500 ms at most']])
    for (let call = 0; call < 20; call++) {
      measurements.begin('p900', 'work')
      measurements.end('p900', 'work', true, 100)
    }
    expect(await left()).toEqual([])
  })
})
