import { type Revocation, signRevocation } from '@hermes-peer/protocol'
import { manualClock } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import { allowList } from '../../src/identity/allow-list.ts'
import { createKeyCheck } from '../../src/identity/key-check.ts'
import { organisation } from '../../src/identity/organisation.ts'
import { createRevocations } from '../../src/identity/revocations.ts'
import { anyOf } from '../../src/identity/trust.ts'
import { certificateOf, notesInMemory, ORGANISATION } from './organisation-support.ts'
import { caught, keyNamed } from './support.ts'

const fingerprint = (name: string) => keyNamed(name).publicKey.fingerprint

function revocation(by: string, more: Partial<Revocation> = {}): Uint8Array {
  const fields = { network: 'default', agent_id: 'a', key: fingerprint('a'), serial: 1, reason: 'lost', ...more }
  return signRevocation(fields, keyNamed(by))
}

/** Revocations at a peer that lists `a`, and trusts the organisation `acme`. */
function keeping() {
  const clock = manualClock({ start: 1_800_000_000_000 })
  const trust = anyOf([
    allowList([{ agent_id: 'a', fingerprint: fingerprint('a') }]),
    organisation({ key: ORGANISATION.publicKey, network: 'default', clock, toleranceMs: 0, keys: createKeyCheck() }),
  ])
  const added: Revocation[] = []
  const told: string[] = []
  const revocations = createRevocations({
    network: 'default',
    trust,
    added: (one) => added.push(one),
    report: (text) => told.push(text),
  })
  let looked = 0
  const take = (document: Uint8Array, allowed = true) =>
    revocations.take(document, () => {
      looked++
      return allowed
    })
  return { revocations, added, told, take, looked: () => looked }
}

describe('revocations', () => {
  it.each<[string, string, Partial<Revocation>]>([
    ['the agent key itself', 'a', {}],
    ['the agent key, of an instance', 'a', { key: fingerprint('instance') }],
    ['the organisation', 'acme', {}],
    ['the organisation, of a team', 'acme', { agent_id: 'ops', key: fingerprint('ops key') }],
    [
      'an agent that nobody here has met, by its certificate',
      'b',
      { agent_id: 'b', certificates: [certificateOf('b')] },
    ],
  ])('by %s hold', (_, by, more) => {
    const { revocations, added, take } = keeping()
    const { agent_id = 'a', key = fingerprint('a') } = more
    expect(take(revocation(by, more))).toBe('new')
    expect(revocations.revoked(agent_id, key)).toBe('lost')
    expect(added).toMatchObject([{ agent_id, key }])
    expect(take(revocation(by, { ...more, serial: 2 }))).toBe('known')
    expect(added).toHaveLength(1)
  })

  it.each<[string, string, Partial<Revocation>]>([
    ['a stranger', 'ghost', {}],
    ['another agent', 'b', { certificates: [certificateOf('b')] }],
    [
      'an agent of another organisation',
      'b',
      { agent_id: 'b', certificates: [certificateOf('b', { by: 'umbrella' })] },
    ],
    ['an instance key', 'instance', {}],
  ])('by %s change nothing', (_, by, more) => {
    const { revocations, added, take } = keeping()
    expect(take(revocation(by, more))).toBe('unjudged')
    expect(revocations.digest()).toBeUndefined()
    expect(added).toEqual([])
  })

  it('are refused when they are forged, or for another network', () => {
    const { revocations, take } = keeping()
    const forged = revocation('a').map((byte, index, all) => (index === all.length - 1 ? byte ^ 1 : byte))
    expect(caught(() => take(forged)).code).toBe('BAD_SIGNATURE')
    expect(caught(() => take(revocation('a', { network: 'prod' }))).code).toBe('WRONG_NETWORK')
    expect(revocations.digest()).toBeUndefined()
  })

  it('by strangers are looked at as far as is allowed, those by keys on record always', () => {
    const { take, looked } = keeping()
    expect(caught(() => take(revocation('ghost'), false)).code).toBe('BUSY')
    expect(looked()).toBe(1)
    expect(take(revocation('a'), false)).toBe('new')
    expect(looked()).toBe(1)
  })

  it('are bounded for what one agent may say of itself; the organisation is still heard', () => {
    const { revocations, take, told } = keeping()
    const one = (n: number) => take(revocation('a', { key: fingerprint(`instance ${n}`) }))
    expect(Array.from({ length: 70 }, (_, n) => one(n)).filter((taken) => taken === 'new')).toHaveLength(64)
    expect(told).toHaveLength(1)
    expect(take(revocation('acme', { key: fingerprint('a') }))).toBe('new')
    expect(revocations.revoked('a', fingerprint('a'))).toBe('lost')
  })

  it('outlive a restart, and name their set alike whatever the order they came in', async () => {
    const { notes, stored } = await notesInMemory()
    const first = keeping()
    await first.revocations.load(notes)
    const [x, y] = [revocation('a'), revocation('a', { key: fingerprint('instance'), reason: '笔记本电脑被盗' })]
    first.take(x)
    first.take(y)
    const second = keeping()
    second.take(y)
    second.take(x)
    expect(second.revocations.digest()).toBe(first.revocations.digest())
    await stored()
    const third = keeping()
    await third.revocations.load(notes)
    expect(third.revocations.digest()).toBe(first.revocations.digest())
    expect(third.revocations.revoked('a', fingerprint('instance'))).toBe('笔记本电脑被盗')
    expect(third.added, 'what was known before is no news').toEqual([])
  })

  it('are handed out in pages, each once', () => {
    const { revocations, take } = keeping()
    const reason = '长'.repeat(256)
    for (let n = 0; n < 400; n++) take(revocation('acme', { key: fingerprint(`instance ${n}`), reason }))
    const documents: Uint8Array[] = []
    let after: string | undefined = ''
    let pages = 0
    while (after !== undefined) {
      const page: ReturnType<typeof revocations.page> = revocations.page(after)
      documents.push(...page.documents)
      after = page.last
      pages++
    }
    expect(pages).toBeGreaterThan(1)
    expect(new Set(documents.map((one) => Buffer.from(one).toString('hex'))).size).toBe(400)
    expect(documents).toHaveLength(400)
  })
})
