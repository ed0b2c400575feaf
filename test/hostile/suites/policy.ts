import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { encodeJson, sha256Hex, signDelegation, toBase64url } from '@hermes-peer/protocol'
import { capability } from 'hermes-peer'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { actor } from '../actors.ts'
import { craft, type Draft } from '../craft.ts'
import { eventually } from '../eventually.ts'
import { chain, hopsBytes } from '../hops.ts'
import { hostileKey, victimKey } from '../provider.ts'
import { dialLink, manifestOf, type RawLink } from '../raw-link.ts'
import { scene, sharedScene } from '../scene.ts'
import type { Victim } from '../victim.ts'

const bossKey = actor('boss')
const thiefKey = actor('thief')
const others = Object.fromEntries([bossKey, thiefKey].map((one) => [one.agentId, manifestOf(one)]))

const transfer = capability('transfer', {
  description: 'Moves money.',
  input: z.any(),
  output: z.any(),
  effects: 'once',
})
const query = capability('query', { description: 'Asks.', input: z.any(), output: z.any(), effects: 'none' })

const POLICY = `serve:
  - principal: hostile
    capability: transfer
    constraints:
      /domain: { equals: finance }
      /amount: { min: 0, max: 100 }
  - principal: [boss, hostile]
    capability: read
  - principal: boss
    capability: transfer
  - principal: "*"
    capability: query
    max_qps: 5
`

describe('a hostile peer against a policy', () => {
  const world = sharedScene()
  let victim: Victim
  let link: RawLink
  const started: unknown[] = []

  const fresh = async (): Promise<RawLink> =>
    dialLink(await world.raw(hostileKey), hostileKey, victim.address, { others })

  beforeAll(async () => {
    const path = join(world.place.path, 'policy.yaml')
    writeFileSync(path, POLICY)
    victim = await world.peer({
      as: victimKey,
      allow: [hostileKey, bossKey, thiefKey],
      policy: path,
      prepare: (peer) => {
        for (const contract of [transfer, query]) {
          peer.provide(contract, (input) => {
            started.push(input)
            return null
          })
        }
      },
    })
    link = await fresh()
  })
  beforeEach(() => {
    victim.mark()
    started.length = 0
  })

  const codeOf = async (sent: { leaf: string }): Promise<unknown> => {
    const { header, payload } = await link.answerTo(sent as never)
    return header.message_type === 'error' ? (payload as { error_code: string }).error_code : 'OK'
  }
  const asks = (input: unknown, more: Draft = {}) => codeOf(link.request('transfer', input, more))

  it('the control: what a rule allows is served, and the decision names the line of the file', async () => {
    expect(await asks({ domain: 'finance', amount: 5 })).toBe('OK')
    expect(victim.of('policy.decided')).toMatchObject([{ effect: 'allow', rule: 'policy.yaml:2', from: 'hostile' }])
  })

  it.each<[string, unknown]>([
    ['missing', { domain: 'finance' }],
    ['null', { domain: 'finance', amount: null }],
    ['a text', { domain: 'finance', amount: '5' }],
    ['a list of which one complies', { domain: ['finance', 'hr'], amount: 5 }],
    ['an empty list', { domain: [], amount: 5 }],
    ['one level deeper', { input: { domain: 'finance', amount: 5 } }],
    [
      'the whole as a list',
      [
        { domain: 'finance', amount: 5 },
        { domain: 'hr', amount: 5 },
      ],
    ],
    ['too large', { domain: 'finance', amount: 1e300 }],
  ])(
    'threat: constraint bypass — a constrained field that is %s is denied, and no handler starts',
    async (_, input) => {
      expect(await asks(input)).toBe('POLICY_DENIED')
      expect(started).toEqual([])
    },
  )

  it.each([
    ['twice, once in each meaning', '{"input":{"domain":"hr","domain":"finance","amount":5}}'],
    ['twice, the second spelt with an escape', '{"input":{"domain":"hr","dom\\u0061in":"finance","amount":5}}'],
    ['as an own __proto__', '{"input":{"__proto__":{"domain":"finance"},"amount":5}}'],
    ['under a prototype', '{"input":{"constructor":{"prototype":{"domain":"finance"}},"amount":5}}'],
    ['beside the input', '{"input":{"domain":"hr","amount":5},"domain":"finance"}'],
  ])('threat: constraint bypass — a field %s is refused before anybody reads it', async (_, text) => {
    const code = await codeOf(link.send({ target_capability: 'transfer', payload: Buffer.from(text) }))
    expect(['INVALID_PAYLOAD', 'MALFORMED']).toContain(code)
    expect(started).toEqual([])
  })

  it('threat: confused deputy — what an allowed forwarder brings of somebody else is judged by both', async () => {
    const handed = async (self: typeof bossKey, target: string) => {
      const from = { self, to: 'hostile', toEpoch: 1, epoch: Date.now(), sequence: 1 }
      const step = { by: hostileKey, next: 'victim' }
      const sent = craft(from, {
        target_capability: target,
        payload: { input: { domain: 'finance', amount: 5 } },
        hops: (leaf) => hopsBytes(chain(leaf, [step])),
      })
      link.stream.send(sent.frame)
      return codeOf(sent)
    }
    expect(await handed(thiefKey, 'transfer')).toBe('POLICY_DENIED')
    expect(started).toEqual([])
    expect(victim.of('policy.decided')).toMatchObject([{ effect: 'deny', subject: 'thief', via: ['hostile'] }])
    expect(await handed(bossKey, 'transfer')).toBe('OK')
    expect(await handed(thiefKey, 'query')).toBe('OK')
  })

  it('a hidden name, or that of what every peer offers, gets nobody around it', async () => {
    for (const name of ['transfer@2', 'other', 'hermes.flight']) {
      expect(['CAPABILITY_NOT_FOUND', 'POLICY_DENIED']).toContain(await codeOf(link.request(name, {})))
    }
    expect(await codeOf(link.request('hermes.manifest', {}))).toBe('OK')
  })

  it('threat: delegation widening — a chain that is edited, stolen, or not the one that is named, is refused', async () => {
    const now = Date.now()
    const lent = (more: object = {}, signer = bossKey) =>
      signDelegation(
        {
          network: 'default',
          from: 'boss',
          key: bossKey.key.publicKey.raw,
          to: 'hostile',
          capabilities: ['transfer'],
          constraints: { '/amount': { max: 1000 } },
          issued_at: now,
          expires_at: now + 60_000,
          ...more,
        },
        signer.key,
      )
    const asksWith = (document: Uint8Array, named = document, amount = 500) =>
      codeOf(
        link.send({
          target_capability: 'transfer',
          delegation: sha256Hex(named),
          payload: encodeJson({ input: { amount }, context: { delegation: toBase64url(document) } }),
        }),
      )
    const edited = new Uint8Array(lent())
    edited.set(Buffer.from('9'), Buffer.from(edited).indexOf('1000'))
    const refusals = [
      edited,
      lent({}, hostileKey),
      lent({ to: 'thief' }),
      lent({ expires_at: now + 86_400_001 }),
      lent({ capabilities: ['query'] }),
      lent({ network: 'other' }),
      lent({ issued_at: now - 120_000, expires_at: now - 60_000 }),
      lent({ from: 'thief', key: thiefKey.key.publicKey.raw }),
    ]
    for (const document of refusals) expect(await asksWith(document)).toBe('DELEGATION_REFUSED')
    expect(await asksWith(lent(), lent({ to: 'thief' }))).toBe('DELEGATION_REFUSED')
    expect(await asksWith(lent(), lent(), 1001)).toBe('DELEGATION_REFUSED')
    expect(started).toEqual([])
    // Sound, and more than the agent itself may.
    expect(await asksWith(lent())).toBe('OK')
    expect(world.escaped).toEqual([])
  })
})

describe('F-39 a quota against a hostile peer', () => {
  it('is one for all its links and lives, and no name that it invents has another', async () => {
    const world = scene()
    let served = 0
    const victim = await world.peer({
      as: victimKey,
      allow: [hostileKey],
      policy: { serve: [{ principal: '*', capability: 'query', max_qps: 5 }] },
      prepare: (peer) =>
        peer.provide(query, () => {
          served++
          return null
        }),
    })
    const raw = await world.raw(hostileKey)
    const since = performance.now()
    for (let life = 0; life < 5; life++) {
      const link = await dialLink(raw, hostileKey, victim.address, { epoch: Date.now() + life })
      const key = hostileKey.key.publicKey.fingerprint
      for (let n = 0; n < 4; n++) {
        link.request('query', n)
        link.request('query', n, { sender: { agent_id: `x-${life}-${n}`, key }, sequence: 1000 + n })
      }
      await eventually(() => link.heard.length >= 4, 'its answers')
      link.reset()
    }
    const seconds = (performance.now() - since) / 1000
    // A second's worth at once, and then the rate.
    expect(served).toBeLessThanOrEqual(5 + Math.ceil(5 * seconds))
    expect(served).toBeGreaterThanOrEqual(5)
    const refused = victim.of('policy.decided').filter(({ because }) => because === 'quota')
    expect(refused.length + served).toBe(20)
    expect(new Set(victim.of('policy.decided').map(({ from }) => from))).toEqual(new Set(['hostile']))
    expect(world.escaped).toEqual([])
  })
})
