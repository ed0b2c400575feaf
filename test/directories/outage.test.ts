import { type TestNetwork, testNetwork } from '@hermes-peer/testkit'
import {
  type AnyEvent,
  capability,
  dhtDirectory,
  explain,
  isHermesError,
  memoryDirectory,
  type Peer,
  type PeerOptions,
} from 'hermes-peer'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'

const contract = (name: string) =>
  capability(name, { description: `Does ${name}.`, input: z.null(), output: z.string(), effects: 'none' })
const [work, exotic, never] = [contract('work'), contract('exotic'), contract('never')]

/** Its network, and a directory that knows agents which the DHT does not. */
function world() {
  const net = testNetwork({ seed: 11 })
  onTestFinished(() => net[Symbol.asyncDispose]())
  const registry = memoryDirectory()
  const events: AnyEvent[] = []
  net.onEvent((agentId, event) => {
    if (agentId === 'desk') events.push(event)
  })
  const of = (type: AnyEvent['type']) => events.filter((event) => event.type === type)
  return { net, registry, of }
}

const failure = async (net: TestNetwork, work: Promise<unknown>) => {
  const error = await net.until(work).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!isHermesError(error)) throw new Error('it did not fail')
  return error
}

describe('bootstrap and directory are lost', () => {
  it('calls go on, look-ups are answered from what is known for 2 min, then fail typed, and recover by themselves', async () => {
    const { net, registry, of } = world()
    const both: Omit<PeerOptions, 'agentId'> = { directories: [dhtDirectory(), registry] }
    const provide = (what: typeof work, by: string) => (peer: Peer) => void peer.provide(what, async () => by)
    await net.peer('seed', both)
    await net.until(net.launch('worker', provide(work, 'worker'), both))
    const desk = await net.peer('desk', both)
    // Only the registry knows it: it joins through nobody, and the DHT hears nothing of it.
    const island: Omit<PeerOptions, 'agentId'> = { directories: [registry], bootstrap: [] }
    await net.until(net.launch('island', provide(exotic, 'island'), island))

    expect(await net.until(desk.call(work, null))).toBe('worker')
    expect(await net.until(desk.call(exotic, null))).toBe('island')
    const before = await net.until(desk.find({ capability: 'exotic' }))
    expect(before).toMatchObject([{ agentId: 'island', usable: true, stale: false }])

    await net.advance('10s')
    await net.crash('seed')
    registry.reachable(false)
    const lostAt = net.timeline.now()
    let calls = 0
    const workFor = async (seconds: number) => {
      for (let second = 0; second < seconds; second++) {
        expect(await net.until(desk.call(work, null))).toBe('worker')
        calls++
        await net.advance('1s')
      }
    }

    // Never asked for while there was somebody to ask: an empty answer is not invented, and not kept.
    for (let times = 0; times < 2; times++) {
      const error = await failure(net, desk.call(never, null))
      expect(error).toMatchObject({ code: 'DIRECTORY_UNREACHABLE', retryable: true })
      expect(error.details.sources).toMatchObject([{ source: 'memory' }])
    }

    await workFor(40)
    const known = await net.until(desk.find({ capability: 'exotic' }))
    await net.advance('1s')
    const stale = await net.until(desk.find({ capability: 'exotic' }))
    expect(known.map(({ agentId }) => agentId)).toEqual(['island'])
    expect(stale).toMatchObject([{ agentId: 'island', usable: true, stale: true }])
    expect(explain(stale)).toMatch(/^✓ island .*stale: memory cannot be reached, its answer is \d+ s old$/)
    expect(of('directory.stale').at(-1)).toMatchObject({ capability: 'exotic', source: 'memory' })
    expect(await net.until(desk.call(exotic, null))).toBe('island')

    // It goes too. What was known is still an answer, though of no use.
    await net.crash('island')
    await workFor(20)
    const gone = await net.until(desk.find({ capability: 'exotic' }))
    expect(gone).toMatchObject([{ agentId: 'island', usable: false, stale: true }])
    expect(gone[0]?.reasons.join()).toMatch(/offline.*stale: memory/)
    expect(await failure(net, desk.call(exotic, null))).toMatchObject({ code: 'NO_CANDIDATE' })

    await workFor(121 - Math.floor((net.timeline.now() - lostAt) / 1000) + 10)
    for (const question of [() => desk.find({ capability: 'exotic' }), () => desk.call(exotic, null)]) {
      const error = await failure(net, question())
      expect(error).toMatchObject({ code: 'DIRECTORY_UNREACHABLE', retryable: true })
      expect(error.message).toMatch(/exotic.*memory: .*island is offline/)
    }
    await workFor(60)
    expect(calls).toBeGreaterThan(150)

    registry.reachable(true)
    await net.until(net.launch('island', provide(exotic, 'island again'), island))
    expect(await net.until(desk.call(exotic, null))).toBe('island again')
    expect(await net.until(desk.find({ capability: 'exotic' }))).toMatchObject([
      { agentId: 'island', usable: true, stale: false },
    ])
    // Now all have said so: nobody offers it.
    expect(await failure(net, desk.call(never, null))).toMatchObject({ code: 'NO_CANDIDATE' })
    expect(of('directory.unreachable')).toMatchObject([
      { source: 'memory', reason: expect.stringContaining('switched off') },
    ])
    expect(of('directory.reachable')).toMatchObject([{ source: 'memory' }])
    expect(desk.balance()).toMatchObject({ inFlight: 0, failed: 5 })
  })

  it('with the DHT alone and nobody in it: typed, not taken for nobody, until the seed is back', async () => {
    const { net, of } = world()
    const seed = await net.peer('seed')
    const listen = [seed.addresses[0]?.replace(/\/p2p\/.*/, '') as string]
    const desk = await net.peer('desk')
    expect(await failure(net, desk.call(never, null))).toMatchObject({ code: 'NO_CANDIDATE' })
    await net.crash('seed')
    await net.advance('1s')
    const error = await failure(net, desk.call(never, null))
    expect(error).toMatchObject({ code: 'DIRECTORY_UNREACHABLE', details: { sources: [{ source: 'dht' }] } })
    await net.until(
      net.launch('seed', (peer) => void peer.provide(never, async () => 'seed'), { listen, bootstrap: [] }),
    )
    await net.advance('10s')
    expect(await net.until(desk.call(never, null))).toBe('seed')
    await net.advance('1s')
    expect(of('directory.reachable')).toMatchObject([{ source: 'dht' }])
  })

  it('a directory that is down from the start holds up neither start, nor calls, nor stop', async () => {
    const { net, registry } = world()
    registry.reachable(false)
    const both: Omit<PeerOptions, 'agentId'> = { directories: [registry, dhtDirectory()] }
    await net.until(
      net.launch('worker', (peer) => void peer.provide(work, async () => 'worker'), both),
      { limitMs: 500 },
    )
    const desk = await net.peer('desk', both)
    await net.advance('1s')
    expect(await net.until(desk.call(work, null), { limitMs: 500 })).toBe('worker')
    await net.until(desk.stop(), { limitMs: 1000 })
  })
})
