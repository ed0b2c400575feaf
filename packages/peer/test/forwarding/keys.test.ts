import { type HermesError, publicKey, signManifest, toBase64url } from '@hermes-peer/protocol'
import { manualClock } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import { DEFAULTS } from '../../src/defaults.ts'
import { createKeys } from '../../src/forwarding/keys.ts'
import { allowList } from '../../src/identity/allow-list.ts'
import { createIdentities } from '../../src/identity/identities.ts'
import type { Link } from '../../src/link/link.ts'
import { keyNamed } from '../identity/support.ts'

const HOUR = 3_600_000
const linkTo = (agentId: string, id = 'one') => ({ id, remote: { agentId } }) as unknown as Link

/** Keys of `self`, who admits `far` and nobody else; `shown` is what a neighbour answers. */
function scene(shown: (input: unknown) => unknown = () => ({}), tunables: object = {}) {
  const clock = manualClock()
  const asked: unknown[] = []
  const keys = createKeys({
    agentId: 'self',
    ownKeys: () => [keyNamed('self').publicKey],
    networkName: 'default',
    identities: createIdentities({
      network: 'default',
      trust: allowList([{ agent_id: 'far', fingerprint: keyNamed('far').publicKey.fingerprint }]),
      keys: publicKey,
      clock,
      tunables: DEFAULTS,
    }),
    clock,
    tunables: { ...DEFAULTS, ...tunables },
    keysOf: (agentId) => (agentId === 'near' ? [keyNamed('near').publicKey] : []),
    ask: async (_, capability, input) => {
      expect(capability).toBe('hermes.manifest')
      asked.push(input)
      return shown(input)
    },
  })
  return { clock, keys, asked }
}

function manifest(agentId: string, now: number, more: { as?: string; network?: string; lifeMs?: number } = {}) {
  const key = keyNamed(more.as ?? agentId)
  return signManifest(
    {
      agent_id: agentId,
      key: key.publicKey.raw,
      network: more.network ?? 'default',
      serial: 1,
      issued_at: now,
      expires_at: now + (more.lifeMs ?? HOUR),
      description: '',
      capabilities: [],
    },
    key,
  )
}
const showing = (document: Uint8Array) => () => ({ manifest: toBase64url(document) })

describe('keys of agents without a link', () => {
  it('are this agent’s own, those that the directory has, and those of kept manifests that trust admits', () => {
    const { keys, clock } = scene()
    expect(keys.find('self')?.fingerprint).toBe(keyNamed('self').publicKey.fingerprint)
    expect(keys.find('near')?.fingerprint).toBe(keyNamed('near').publicKey.fingerprint)
    expect(keys.find('far')).toBeUndefined()
    keys.keep('far', manifest('far', clock.now()))
    expect(keys.find('far')?.fingerprint).toBe(keyNamed('far').publicKey.fingerprint)
  })

  it('are not those of an agent that is not admitted: its manifest is kept for others, and tells a forgery', () => {
    const { keys, clock } = scene()
    const document = manifest('ghost', clock.now())
    keys.keep('ghost', document)
    expect(keys.find('ghost')).toBeUndefined()
    expect(keys.named('ghost')?.fingerprint).toBe(keyNamed('ghost').publicKey.fingerprint)
    expect(keys.document('ghost')).toEqual(document)
  })

  it('are asked of the neighbour by name, and of itself as everyone does', async () => {
    const { keys, asked } = scene(showing(manifest('far', manualClock().now())))
    await keys.learn(linkTo('near'), 'far')
    expect(keys.find('far')).toBeDefined()
    // It is at hand.
    await keys.learn(linkTo('near'), 'far')
    expect(asked).toEqual([{ agent_id: 'far' }])
    const other = scene(showing(manifest('far', manualClock().now())))
    await other.keys.learn(linkTo('far'), 'far')
    expect(other.asked).toEqual([{}])
  })

  const now = manualClock().now()
  it.each<[string, unknown]>([
    ['nothing', {}],
    ['no object', 'x'],
    ['no document', { manifest: 'AAAA' }],
    ['that of another agent', showing(manifest('near', now))()],
    ['one of another network', showing(manifest('far', now, { network: 'other' }))()],
    ['one that has expired', showing(manifest('far', now, { lifeMs: -1 }))()],
    ['one under a key that is not admitted', showing(manifest('far', now, { as: 'ghost' }))()],
    [
      'one that was changed',
      { manifest: toBase64url(manifest('far', now).map((byte, i) => (i === 40 ? byte ^ 1 : byte))) },
    ],
  ])('are not learnt from %s; for a while the same link is not asked again', async (_, output) => {
    const { keys, asked, clock } = scene(() => output)
    const link = linkTo('near')
    await keys.learn(link, 'far')
    expect(keys.find('far')).toBeUndefined()
    expect(keys.vain(link, 'far')).toBe(true)
    await keys.learn(link, 'far')
    expect(asked).toHaveLength(1)
    await keys.learn(linkTo('near', 'two'), 'far')
    expect(asked).toHaveLength(2)
    await clock.timeline.advance(DEFAULTS.lookupFreshMs)
    expect(keys.vain(link, 'far')).toBe(false)
    await keys.learn(link, 'far')
    expect(asked).toHaveLength(3)
  })

  it('are asked for once, however many wait, and of so many agents at a time', async () => {
    let answer = (_: unknown): void => undefined
    const { keys, asked } = scene(() => new Promise((resolve) => (answer = resolve)), { manifestsAsked: 1 })
    const link = linkTo('near')
    const all = Promise.all([keys.learn(link, 'far'), keys.learn(link, 'far')])
    // Over the bound nothing is asked, and nobody waits.
    await keys.learn(link, 'ghost')
    expect(asked).toHaveLength(1)
    answer({})
    await all
    await keys.learn(link, 'far')
    expect(asked).toHaveLength(1)
  })

  it('end with their manifest', async () => {
    const { keys, clock } = scene()
    keys.keep('far', manifest('far', clock.now(), { lifeMs: HOUR }))
    await clock.timeline.advance(HOUR + 1)
    expect([keys.find('far'), keys.named('far'), keys.document('far')]).toEqual([undefined, undefined, undefined])
  })

  it('survive a neighbour that fails', async () => {
    const { keys } = scene(() => Promise.reject(new Error('gone') as HermesError))
    await keys.learn(linkTo('near'), 'far')
    expect(keys.find('far')).toBeUndefined()
  })

  it('are kept in bounds: the least used go first', () => {
    const { keys, clock } = scene(undefined, { manifestsKept: 2 })
    for (const agentId of ['x', 'y', 'z']) keys.keep(agentId, manifest(agentId, clock.now()))
    expect(['x', 'y', 'z'].map((agentId) => keys.document(agentId) !== undefined)).toEqual([false, true, true])
  })
})
