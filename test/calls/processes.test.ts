import { capability, type Peer, type WatchChange } from 'hermes-peer'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import * as z from 'zod'
import { deferred, until } from '../../packages/peer/test/waiting.ts'
import { free } from './support/process-messages.ts'
import { type Child, startChild } from './support/processes.ts'
import { createTeam } from './support/team.ts'

const blocker = capability('block', {
  description: 'Blocks its event loop.',
  input: z.number(),
  output: z.string(),
  effects: 'none',
})
const patient = capability('patient', {
  description: 'Waits.',
  input: z.null(),
  output: z.string(),
  effects: 'none',
})

// One other process serves all of these, in this order: starting one costs more than the tests.
const team = createTeam()
let desk: Peer
let child: Child
const changes: WatchChange['type'][] = []
const asked: AbortSignal[] = []
let answer = deferred<string>()

beforeAll(async () => {
  // Probed soon, but given up only after 6 s; suspected after 0.9 s without presence.
  const tuning = { silenceMs: 400, probeMs: 2000, probesLost: 3, tickMs: 50, presenceMs: 300, callerGraceMs: 200 }
  desk = await team.start(
    'desk',
    (peer) =>
      peer.provide(patient, (_, { signal }) => {
        asked.push(signal)
        return answer.promise
      }),
    { tuning },
  )
  child = await startChild({
    agentId: 'blocker',
    folder: team.folder,
    // Would find us dead after 0.9 s of silence.
    tuning: { silenceMs: 300, probeMs: 200, probesLost: 3, tickMs: 50, stallMs: 200, presenceMs: 300 },
  })
  desk.watch({ agent: 'blocker' }, ({ type }) => changes.push(type))
  await desk.manifest('blocker')
})
afterAll(async () => {
  await child?.end()
  await team.stop()
})

const askDesk = () => child.send({ type: 'call', agent: 'desk', capability: 'patient', input: null, timeoutMs: 20_000 })

describe('F-24 busy is taken for dead', () => {
  it('a provider that blocks its event loop is probed and suspected, but keeps its link and its calls', async () => {
    const told: string[] = []
    const offs = [
      desk.events.on('link.probe', () => told.push('probe')),
      desk.events.on('link.down', () => told.push('down')),
      desk.events.on('link.up', () => told.push('up')),
    ]
    const answers = await Promise.all([desk.call(blocker, 1500), desk.call(free, 'behind it', { timeoutMs: 20_000 })])
    expect(answers).toEqual(['awake', 'behind it'])
    expect(told).toContain('probe')
    // In steps: suspected, and back again without registering anew.
    expect(changes).toContain('suspect')
    await until(() => changes.lastIndexOf('changed') > changes.lastIndexOf('suspect'), `back again in ${changes}`)
    expect(told.filter((what) => what !== 'probe')).toEqual([])
    expect(await desk.call(free, 'afterwards')).toBe('afterwards')
    expect(desk.balance()).toMatchObject({ calls: 3, succeeded: 3, failovers: 0 })
    for (const off of offs) off()
  })

  it('a peer that was blocked itself declares nobody dead when it wakes', async () => {
    askDesk()
    await until(() => asked.length === 1)
    child.send({ type: 'block', ms: 1500 })
    answer.resolve('still here')
    expect(await child.message('result')).toEqual({ type: 'result', output: 'still here' })
    expect(child.told.filter(({ type }) => type === 'link down')).toEqual([])
  })
})

describe('the other process is killed', () => {
  it('F-18 handler keeps running after the caller is gone: (b) it is aborted, soon; calls to the dead one go elsewhere at once', async () => {
    answer = deferred()
    askDesk()
    await until(() => asked.length === 2)
    const other = await team.start('other', (peer) => peer.provide(blocker, () => 'other'))
    await desk.manifest('other')
    const before = desk.balance().calls
    const calls = Array.from({ length: 10 }, () => desk.request(blocker, 20_000))
    const only = desk.request(blocker, 20_000, { agent: 'blocker' }).catch((error: unknown) => error)
    await until(() => desk.balance().calls === before + 11)
    child.kill('SIGKILL')
    const answers = await Promise.all(calls)
    expect(new Set(answers.map(({ agent }) => agent))).toEqual(new Set(['other']))
    expect(await only).toMatchObject({ code: expect.stringMatching(/PEER_UNREACHABLE|NO_CANDIDATE/) })
    expect((await desk.find({ capability: 'block' }))[0]?.agentId).toBe(other.agentId)
    expect(changes.at(-1), 'without a word, so it has not left').toBe('offline')
    await until(() => asked[1]?.aborted === true, 'the abort', 5000)
    expect(asked[1]?.reason).toMatchObject({ code: 'CALLER_GONE' })
  })
})
