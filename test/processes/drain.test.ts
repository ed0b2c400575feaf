import { createPeer, HermesError, type Peer } from 'hermes-peer'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { UNSAFE } from './contracts.ts'
import { type AgentProcess, createFleet, eventually, type Fleet } from './fleet.ts'

/** As the agent program says. */
const DRAIN_MS = 6000

let fleet: Fleet
let caller: Peer

beforeAll(async () => {
  fleet = await createFleet()
  caller = await createPeer({ agentId: 'caller', folder: fleet.folder }).start()
})
afterAll(async () => {
  await caller?.stop({ drainMs: 0 })
  await fleet?.stop()
})

async function provider(agentId: string): Promise<AgentProcess> {
  const agent = fleet.launch(agentId, { bootstrap: caller.addresses })
  await agent.ready()
  await eventually(
    async () => (await caller.find({ capability: UNSAFE.name, agent: agentId })).some(({ usable }) => usable),
    20_000,
  )
  return agent
}

const ended = ({ child }: AgentProcess) =>
  new Promise<{ code: number | null; after: number }>((resolve) => {
    const since = performance.now()
    child.once('exit', (code) => resolve({ code, after: performance.now() - since }))
  })
const startsOf = (agent: AgentProcess, label: string) =>
  agent.messages.filter(({ type, id }) => type === 'started' && id?.startsWith(label)).length
const pay = (id: string, ms: number, options: object = {}) =>
  caller.call(UNSAFE, { ms, id }, { timeoutMs: 20_000, ...options }).then(
    ({ by }) => by,
    (error: unknown) => HermesError.from(error).code,
  )

describe('F-44 stop signal cuts work in flight, in processes', () => {
  test('SIGTERM under 20 running calls of effects once: all are answered, none is lost, new ones go elsewhere, exit code 0', async () => {
    const [victim, other] = [await provider('victim'), await provider('other')]
    const calls = Array.from({ length: 20 }, (_, i) => pay(`run-${i}`, 5000, { agent: 'victim' }))
    await eventually(() => startsOf(victim, 'run-') === 20)
    const gone = ended(victim)
    victim.kill('SIGTERM')
    const late = Array.from({ length: 10 }, (_, i) => pay(`late-${i}`, 1))
    expect(await Promise.all(calls)).toEqual(calls.map(() => 'victim'))
    const answers = await Promise.all(late)
    expect(answers.filter((by) => by !== 'other' && by !== 'victim')).toEqual([])
    expect(startsOf(victim, 'late-') + startsOf(other, 'late-')).toBe(10)
    const { code, after } = await gone
    expect(code).toBe(0)
    expect(after).toBeLessThan(DRAIN_MS)
    expect(await pay('after', 1)).toBe('other')
  }, 60_000)

  test('what runs for longer is aborted at the end of the time, the caller is told, exit code 1', async () => {
    const victim = await provider('long')
    const call = pay('long-1', 15_000, { agent: 'long' })
    await eventually(() => startsOf(victim, 'long-') === 1)
    const gone = ended(victim)
    victim.kill('SIGTERM')
    const { code, after } = await gone
    expect(code).toBe(1)
    expect(after).toBeGreaterThan(DRAIN_MS - 500)
    expect(after).toBeLessThan(DRAIN_MS + 3000)
    // Told by the agent itself, as its handler heeds the signal; a lost link would leave it open what became of it.
    expect(await call).toBe('CALLER_GONE')
  }, 60_000)

  test('a second signal ends the process at once', async () => {
    const victim = await provider('twice')
    const call = pay('twice-1', 15_000, { agent: 'twice' })
    await eventually(() => startsOf(victim, 'twice-') === 1)
    const draining = new Promise<void>((resolve) => {
      const stop = caller.watch({ agent: 'twice' }, ({ type }) => {
        if (type !== 'changed') return
        queueMicrotask(() => stop())
        resolve()
      })
    })
    const gone = ended(victim)
    victim.kill('SIGTERM')
    await draining
    victim.kill('SIGTERM')
    const { code, after } = await gone
    expect(code).toBe(143)
    expect(after).toBeLessThan(DRAIN_MS - 1000)
    expect(await call).toBe('OUTCOME_UNKNOWN')
  }, 60_000)
})
