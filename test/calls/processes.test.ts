import { capability, type Peer, type WatchChange } from 'hermes-peer'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import * as z from 'zod'
import { free } from './support/process-messages.ts'
import { startChild } from './support/processes.ts'
import { createTeam, deferred, type Team, until } from './support/team.ts'

const blocker = capability('block', {
  description: 'Blocks its event loop.',
  input: z.number(),
  output: z.string(),
  effects: 'none',
})
const patient = capability('patient', { description: 'Waits.', input: z.null(), output: z.string(), effects: 'none' })

let team: Team
beforeEach(() => {
  team = createTeam()
})
afterEach(() => team.stop())

describe('F-24 busy is taken for dead', () => {
  it('a provider that blocks its event loop is probed, but keeps its link and its calls', async () => {
    const desk = await team.start('desk', undefined, {
      tuning: { silenceMs: 400, probeMs: 2000, probesLost: 3, tickMs: 50 },
    })
    await startChild({ agentId: 'blocker', folder: team.folder })
    const told: string[] = []
    desk.events.on('link.probe', () => told.push('probe'))
    desk.events.on('link.down', () => told.push('down'))
    const answers = await Promise.all([desk.call(blocker, 1500), desk.call(free, 'behind it', { timeoutMs: 20_000 })])
    expect(answers).toEqual(['awake', 'behind it'])
    expect(told).toContain('probe')
    expect(told).not.toContain('down')
    expect(await desk.call(free, 'afterwards')).toBe('afterwards')
    expect(desk.balance()).toMatchObject({ calls: 3, succeeded: 3, failovers: 0 })
  })

  it('online → suspect, which fails nothing in flight, → online again without registering anew', async () => {
    const tuning = { presenceMs: 300, tickMs: 50 }
    const desk = await team.start('desk', undefined, { tuning })
    const changes: WatchChange['type'][] = []
    await startChild({ agentId: 'blocker', folder: team.folder, tuning })
    desk.watch({ agent: 'blocker' }, ({ type }) => changes.push(type))
    await until(() => changes.includes('joined'))
    const links: string[] = []
    desk.events.on('link.up', ({ agentId }) => links.push(agentId))
    expect(await desk.call(blocker, 1300, { timeoutMs: 20_000 })).toBe('awake')
    await until(() => changes.includes('suspect'), `suspect in ${changes}`)
    const usable = async () => (await desk.find({ capability: 'free' }))[0]?.status
    let status = await usable()
    await until(() => {
      void usable().then((now) => {
        status = now
      })
      return status === 'online'
    }, 'online again')
    expect(links, 'over the link it had').toEqual([])
  })

  it('a peer that was blocked itself declares nobody dead when it wakes', async () => {
    const answer = deferred<string>()
    const asked = deferred()
    await team.start('desk', (peer) =>
      peer.provide(patient, () => {
        asked.resolve()
        return answer.promise
      }),
    )
    // It would find us dead after 900 ms of silence, and is blocked for longer than that.
    const child = await startChild({
      agentId: 'blocker',
      folder: team.folder,
      tuning: { silenceMs: 300, probeMs: 200, probesLost: 3, tickMs: 50, stallMs: 200 },
    })
    child.send({ type: 'call', agent: 'desk', capability: 'patient', input: null, timeoutMs: 20_000 })
    await asked.promise
    child.send({ type: 'block', ms: 2000 })
    answer.resolve('still here')
    expect(await child.message('result')).toEqual({ type: 'result', output: 'still here' })
    expect(child.told.filter(({ type }) => type === 'link down')).toEqual([])
  })
})

describe('F-18 handler keeps running after the caller is gone', () => {
  it('(b) the caller is killed: the handler is aborted, soon', async () => {
    const reasons: unknown[] = []
    const asked = deferred()
    await team.start(
      'desk',
      (peer) =>
        peer.provide(
          patient,
          (_, { signal }) =>
            new Promise((resolve) => {
              asked.resolve()
              signal.addEventListener('abort', () => {
                reasons.push((signal.reason as { code?: string }).code)
                resolve('aborted')
              })
            }),
        ),
      { tuning: { callerGraceMs: 200 } },
    )
    const child = await startChild({ agentId: 'caller', folder: team.folder })
    child.send({ type: 'call', agent: 'desk', capability: 'patient', input: null, timeoutMs: 20_000 })
    await asked.promise
    child.kill('SIGKILL')
    await until(() => reasons.length > 0, 'the abort', 5000)
    expect(reasons).toEqual(['CALLER_GONE'])
  })

  it('a provider that is killed: calls in flight go elsewhere, and it is out of the choice at once', async () => {
    const desk: Peer = await team.start('desk')
    await team.start('other', (peer) => peer.provide(blocker, () => 'other'))
    const child = await startChild({ agentId: 'blocker', folder: team.folder })
    await desk.manifest('other')
    const call = desk.request(blocker, 30_000, { agent: 'blocker' }).catch((error: unknown) => error)
    const free_ = Array.from({ length: 10 }, () => desk.request(blocker, 30_000))
    await until(() => desk.balance().calls === 11)
    child.kill('SIGKILL')
    const answers = await Promise.all(free_)
    expect(new Set(answers.map(({ agent }) => agent))).toEqual(new Set(['other']))
    expect(await call).toMatchObject({ code: expect.stringMatching(/PEER_UNREACHABLE|NO_CANDIDATE/) })
    const [first] = await desk.find({ capability: 'block' })
    expect(first?.agentId).toBe('other')
  })
})
