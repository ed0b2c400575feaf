import { type TestNetwork, testNetwork } from '@hermes-peer/testkit'
import { capability, type HermesError, type Peer } from 'hermes-peer'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'

const contract = capability('work', {
  description: 'Says who works.',
  input: z.number(),
  output: z.string(),
  effects: 'none',
  constraints: { maxConcurrency: 50 },
})

async function provider(net: TestNetwork, agentId: string, ms = 20): Promise<Peer> {
  const serve = (peer: Peer) =>
    void peer.provide(contract, async () => {
      await net.sleep(ms)
      return agentId
    })
  return net.until(net.launch(agentId, serve, { journal: false }))
}

/** A call every `everyMs` of virtual time; who answered, or the code it ended with. */
async function drive(net: TestNetwork, caller: Peer, seconds: number, everyMs = 50): Promise<string[]> {
  const calls: Promise<string>[] = []
  for (let at = 0; at < seconds * 1000; at += everyMs) {
    calls.push(caller.call(contract, at).catch((error: HermesError) => error.code))
    await net.advance(everyMs)
  }
  return net.until(Promise.all(calls))
}

const answers = (who: readonly string[]) => new Set(who)

describe('presence under stress', () => {
  it('F-27 a peer that comes and goes costs no call, and whoever watches hears of each step in turn', async () => {
    await using net = testNetwork({ seed: 11 })
    const caller = await net.peer('caller', { journal: false })
    await provider(net, 'steady')
    await provider(net, 'flapping')
    await net.advance('1s')
    const steps: string[] = []
    caller.watch({ agent: 'flapping' }, ({ type }) => void steps.push(type))
    for (let turn = 0; turn < 8; turn++) {
      const calls = drive(net, caller, 1)
      await calls
      await net.crash('flapping')
      const without = answers(await drive(net, caller, 1))
      expect([...without]).toEqual(['steady'])
      await provider(net, 'flapping')
    }
    expect(caller.balance()).toMatchObject({ failed: 0, inFlight: 0 })
    await net.advance('1s')
    expect(steps).toEqual(['joined', ...Array(8).fill(['offline', 'joined']).flat()])
    const [entry] = (await caller.find({ agent: 'flapping' })).filter(({ usable }) => usable)
    expect(entry?.status).toBe('online')
  })

  it('a peer whose places are all taken stays online and gets nothing more while another has one', async () => {
    await using net = testNetwork({ seed: 12 })
    const caller = await net.peer('caller', { journal: false })
    await provider(net, 'slow', 30_000)
    await net.advance('1s')
    const held = Array.from({ length: 50 }, (_, index) => caller.call(contract, index))
    await net.advance('2s')
    await provider(net, 'quick')
    await net.advance('1s')
    const found = await net.until(caller.find({ capability: 'work' }))
    expect(found.find(({ agentId }) => agentId === 'slow')?.status).toBe('online')
    expect([...answers(await drive(net, caller, 3))]).toEqual(['quick'])
    expect([...answers(await net.until(Promise.all(held)))]).toEqual(['slow'])
  })

  it('a peer that leaves in good order gets no new work from the moment it says so, and what it has it ends', async () => {
    await using net = testNetwork({ seed: 13 })
    const caller = await net.peer('caller', { journal: false })
    const leaving = await provider(net, 'leaving', 3000)
    await net.advance('1s')
    const last = Array.from({ length: 5 }, (_, index) => caller.call(contract, index))
    await net.advance('500ms')
    await provider(net, 'staying')
    const steps: string[] = []
    caller.watch({ agent: 'leaving' }, ({ type }) => void steps.push(type))
    await net.advance('500ms')
    const stopped = leaving.stop({ drainMs: 10_000 })
    await net.advance(50)
    expect([...answers(await drive(net, caller, 4))]).toEqual(['staying'])
    expect([...answers(await net.until(Promise.all(last)))]).toEqual(['leaving'])
    await net.until(stopped)
    await net.advance(100)
    expect(steps).toEqual(['joined', 'changed', 'left'])
    expect(caller.balance()).toMatchObject({ failed: 0, failovers: 0 })
  })

  it('F-24 a peer that hears nothing for 20 s and then wakes has lost nobody, and nobody is lost to the others', async () => {
    await using net = testNetwork({ seed: 14 })
    const caller = await net.peer('caller', { journal: false })
    for (const agentId of ['one', 'two', 'three']) await provider(net, agentId)
    await net.advance('15s')
    const lost: string[] = []
    net.onEvent((agentId, event) => {
      if (event.type === 'directory.offline') lost.push(`${agentId} lost ${event.agentId}`)
    })
    net.faults.stall(net.peerId('one'), { forMs: 20_000 })
    await net.advance('25s')
    expect(lost).toEqual([])
    expect(answers(await drive(net, caller, 5))).toEqual(new Set(['one', 'two', 'three']))
    expect(caller.balance().failed).toBe(0)
  })
})
