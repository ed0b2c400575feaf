import { openPresence, type Presence, presenceTopic, publicKey, signPresence } from '@hermes-peer/protocol'
import { manualClock, seededRandom } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import { DEFAULTS } from '../../src/defaults.ts'
import { createPresenceBeacon } from '../../src/directory/presence.ts'
import { createIdentities } from '../../src/identity/identities.ts'
import { ownInstance } from '../../src/identity/own-instance.ts'
import type { Network, Verdict } from '../../src/network/network.ts'
import { createTelemetry } from '../../src/telemetry/telemetry.ts'
import { keyNamed, only, report } from './support.ts'

function beaming(options: { listeners?: number; seed?: string } = {}) {
  const clock = manualClock()
  const sent: { at: number; presence: Presence }[] = []
  const state = { listeners: options.listeners ?? 1, load: 20, verdict: 'accept' as Verdict }
  let receive: ((message: { from: string; data: Uint8Array }) => Verdict) | undefined
  const refused: string[] = []
  const telemetry = createTelemetry({ clock })
  telemetry.events.on('presence.refused', ({ code }) => refused.push(code))
  const network = {
    addresses: () => ['/ip4/127.0.0.1/tcp/1'],
    subscribe: (topic: string, on: typeof receive) => {
      expect(topic).toBe(presenceTopic('default'))
      receive = on
      return () => {
        receive = undefined
      }
    },
    publish: async (_: string, data: Uint8Array) => {
      sent.push({ at: clock.monotonic(), presence: openPresence(data).presence })
      return state.listeners
    },
  } as unknown as Network
  const heard: string[] = []
  const remembered: Uint8Array[] = []
  const beacon = createPresenceBeacon({
    agentId: 'me',
    networkName: 'default',
    epoch: 7,
    key: keyNamed('me').publicKey,
    instance: () => ownInstance(keyNamed('me'), keyNamed('me').publicKey, []),
    identities: createIdentities({
      network: 'default',
      trust: only('me', 'a'),
      keys: (raw) => {
        remembered.push(raw)
        return publicKey(raw)
      },
      clock,
      tunables: DEFAULTS,
    }),
    network,
    clock,
    random: seededRandom(options.seed ?? 'presence'),
    tunables: DEFAULTS,
    telemetry,
    own: () => ({ capabilities: ['work'], load: state.load, queueDepth: 2, success: 0.9996, manifestSerial: 3 }),
    heard: ({ presence }) => {
      heard.push(presence.agent_id)
      return state.verdict
    },
  })
  return {
    beacon,
    sent,
    state,
    heard,
    refused,
    advance: (ms: number) => clock.timeline.advance(ms),
    remembered,
    hear: (data: Uint8Array, from = 'x') => receive?.({ from, data }),
    pendingTimers: () => clock.timeline.pending,
  }
}

describe('the presence beacon', () => {
  it('reports at the start, and then every 10 s ± 10 %', async () => {
    const { beacon, sent, advance } = beaming()
    beacon.start()
    await advance(1)
    expect(sent).toHaveLength(1)
    await advance(10 * 60_000)
    const regular = sent.slice(1).map(({ at }) => at)
    expect(regular.length).toBeGreaterThanOrEqual(54)
    expect(regular.length).toBeLessThanOrEqual(67)
    const gaps = regular.map((at, index) => at - (regular[index - 1] ?? 0))
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(9000)
    expect(Math.max(...gaps)).toBeLessThanOrEqual(11_000)
    expect(new Set(gaps.map(Math.round)).size, 'jittered').toBeGreaterThan(gaps.length / 2)
  })

  it('counts its reports up, under its epoch, signed by its key', async () => {
    const { beacon, sent, advance } = beaming()
    beacon.start()
    await advance(35_000)
    expect(sent.map(({ presence }) => presence.counter)).toEqual(sent.map((_, index) => index))
    expect(sent[0]?.presence).toMatchObject({
      agent_id: 'me',
      network: 'default',
      epoch: 7,
      state: 'up',
      addresses: ['/ip4/127.0.0.1/tcp/1'],
      capabilities: ['work'],
      load: 20,
      queue_depth: 2,
      success_rate_15m: 1,
      manifest_serial: 3,
    })
  })

  it.each([
    [-5, 0],
    [0.4, 0],
    [99.6, 100],
    [400, 100],
  ])('reports a load of %d as %d', async (load, reported) => {
    const { beacon, sent, state } = beaming()
    state.load = load
    await beacon.announce()
    expect(sent[0]?.presence.load).toBe(reported)
  })

  it('reports a change of state at once', async () => {
    const { beacon, sent } = beaming()
    await beacon.announce('draining')
    await beacon.announce('leaving')
    expect(sent.map(({ presence }) => presence.state)).toEqual(['draining', 'leaving'])
  })

  it('F-17 repeats a change until somebody is there to hear it', async () => {
    const { beacon, sent, state, advance } = beaming({ listeners: 0 })
    beacon.start()
    await advance(1000)
    expect(sent.length).toBeGreaterThanOrEqual(4)
    state.listeners = 1
    await advance(250)
    const count = sent.length
    await advance(5000)
    expect(sent).toHaveLength(count)
  })

  it('waits for nobody on the way out', async () => {
    const { beacon, sent, advance, pendingTimers } = beaming({ listeners: 0 })
    await beacon.announce('leaving')
    await advance(60_000)
    expect(sent).toHaveLength(1)
    expect(pendingTimers()).toBe(0)
  })

  it('introduces itself soon when somebody is new, once, and not when a report went out lately', async () => {
    const { beacon, sent, advance } = beaming()
    beacon.introduce()
    beacon.introduce()
    await advance(1000)
    expect(sent).toHaveLength(1)
    beacon.introduce()
    await advance(4000)
    expect(sent).toHaveLength(1)
    await advance(1000)
    beacon.introduce()
    await advance(1000)
    expect(sent).toHaveLength(2)
  })

  it('F-16 does not introduce itself in the same instant as everyone else', async () => {
    const times: number[] = []
    for (let i = 0; i < 20; i++) {
      const { beacon, sent, advance } = beaming({ seed: `peer ${i}` })
      beacon.introduce()
      await advance(1000)
      times.push(Math.round(sent[0]?.at as number))
    }
    expect(new Set(times).size).toBeGreaterThan(15)
  })

  it('leaves no timer and hears nothing when it stops', async () => {
    const { beacon, sent, advance, hear, pendingTimers } = beaming()
    beacon.start()
    await advance(1)
    beacon.introduce()
    beacon.stop()
    expect(pendingTimers()).toBe(0)
    await beacon.announce()
    await advance(60_000)
    expect(sent).toHaveLength(1)
    expect(hear(new Uint8Array())).toBeUndefined()
  })
})

describe('a report that is heard', () => {
  const signed = (more: Partial<Presence> = {}, by = 'a') =>
    signPresence({ ...report('a').presence, ...more }, keyNamed(by))

  it.each(['accept', 'ignore'] as const)('is judged by the directory when it is authentic: %s', (verdict) => {
    const { beacon, hear, heard, state } = beaming()
    beacon.start()
    state.verdict = verdict
    expect(hear(signed())).toBe(verdict)
    expect(heard).toEqual(['a'])
  })

  it.each([
    ['signed by another key than it shows', signed({}, 'b'), 'BAD_SIGNATURE'],
    ['that is no document', new Uint8Array([1, 2, 3]), 'MALFORMED'],
    [
      'with a byte changed',
      signed().map((byte, index) => (index === 40 ? byte ^ 1 : byte)),
      expect.stringMatching(/BAD_SIGNATURE|BAD_KEY|MALFORMED/),
    ],
    ['that is too long', new Uint8Array(20_000), expect.stringMatching(/LIMIT_EXCEEDED|MALFORMED/)],
  ])('%s is rejected before anything looks at it', (_, data, code) => {
    const { beacon, hear, heard, refused } = beaming()
    beacon.start()
    expect(hear(data)).toBe('reject')
    expect(heard).toEqual([])
    expect(refused).toEqual([code])
  })

  it('of agents that are not admitted is passed on, within what a neighbour may make us check, and no key of them is kept', async () => {
    const { beacon, hear, heard, remembered, refused, advance } = beaming()
    beacon.start()
    const bad = signed({ agent_id: 'stranger' }, 'b')
    for (let i = 0; i < DEFAULTS.presenceStrangers; i++) expect(hear(bad)).toBe('reject')
    // Over it nothing is verified any more, so that it cannot be a bad signature either.
    expect(hear(bad)).toBe('ignore')
    expect(refused).toHaveLength(DEFAULTS.presenceStrangers)
    expect(heard).toEqual([])
    const good = signPresence({ ...report('stranger').presence }, keyNamed('stranger'))
    expect(hear(good, 'another neighbour')).toBe('accept')
    expect(remembered).toEqual([])
    // Whoever is admitted is heard all the same.
    expect(hear(signed())).toBe('accept')
    expect(heard).toEqual(['stranger', 'a'])
    expect(remembered).toHaveLength(1)
    await advance(DEFAULTS.presenceWindowMs + 1)
    expect(hear(good)).toBe('accept')
  })

  it('of agents that are not admitted is not verified more often than all neighbours together may make us', () => {
    const { beacon, hear } = beaming()
    beacon.start()
    const bad = signed({ agent_id: 'stranger' }, 'b')
    const verdicts = Array.from({ length: 300 }, (_, i) => hear(bad, `neighbour ${i}`))
    expect(verdicts.filter((verdict) => verdict === 'reject')).toHaveLength(DEFAULTS.presenceStrangersPerNode)
  })

  it('of another network changes nothing here', () => {
    const { beacon, hear, heard } = beaming()
    beacon.start()
    expect(hear(signed({ network: 'elsewhere' }))).not.toBe('accept')
    expect(heard).toEqual([])
  })
})
