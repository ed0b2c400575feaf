import { type AnyEvent, capability, isHermesError, type Peer } from 'hermes-peer'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import * as z from 'zod'
import { deferred, until } from '../../packages/peer/test/waiting.ts'
import { createTeam, type Team } from './support/team.ts'

const contractOf = (effects: 'none' | 'idempotent' | 'once') =>
  capability('work', { description: 'Works.', input: z.number(), output: z.string(), effects })

let team: Team
beforeEach(() => {
  team = createTeam()
})
afterEach(() => team.stop())

/** Providers of one capability whose handlers wait for their gate, and a caller that knows them. */
async function scene(effects: 'none' | 'idempotent' | 'once', names: readonly string[]) {
  const work = contractOf(effects)
  const gates = Object.fromEntries(names.map((name) => [name, deferred()]))
  const started: string[] = []
  const providers: Record<string, Peer> = {}
  await Promise.all(
    names.map(async (name) => {
      providers[name] = await team.start(name, (peer) =>
        peer.provide(work, async () => {
          started.push(name)
          await gates[name]?.promise
          return name
        }),
      )
    }),
  )
  const caller = await team.start('caller')
  const events: AnyEvent[] = []
  caller.events.onAny((event) => events.push(event))
  await Promise.all(names.map((name) => caller.manifest(name)))
  return { work, gates, started, providers, caller, events }
}

describe('a provider that stops in the middle, without time to drain', () => {
  it('effects none: the same work goes to another candidate, within the call', async () => {
    const { work, gates, started, providers, caller, events } = await scene('none', ['a', 'b'])
    const answer = caller.request(work, 1)
    await until(() => started.length === 1)
    const [first] = started as ['a' | 'b']
    const other = first === 'a' ? 'b' : 'a'
    gates[other]?.resolve()
    await providers[first]?.stop({ drainMs: 0 })
    const { agent, output, attempts, messageId } = await answer
    expect({ agent, output }).toEqual({ agent: other, output: other })
    expect(attempts).toMatchObject([{ agentId: first }])
    expect(events.find(({ type }) => type === 'call.failover')).toMatchObject({ from: first, to: other, messageId })
    expect(caller.balance()).toMatchObject({ calls: 1, succeeded: 1, failed: 0, inFlight: 0, failovers: 1 })
    gates[first]?.resolve()
  })

  it('effects once: it ends with OUTCOME_UNKNOWN and the id to reconcile by, and is started nowhere else', async () => {
    const { work, started, providers, caller, gates } = await scene('once', ['a', 'b'])
    const answer = caller.request(work, 1, { timeoutMs: 8000 })
    answer.catch(() => undefined)
    await until(() => started.length === 1)
    const [first] = started as ['a' | 'b']
    await providers[first]?.stop({ drainMs: 0 })
    const error = await answer.catch((caught: unknown) => caught)
    if (!isHermesError(error)) throw error
    // A graceful stop may still tell that the work was aborted: that is an outcome too.
    expect(['OUTCOME_UNKNOWN', 'CALLER_GONE', 'HANDLER_ERROR']).toContain(error.code)
    expect(error.messageId).toMatch(/^msg_/)
    expect(started).toEqual([first])
    expect(caller.balance()).toMatchObject({ calls: 1, failed: 1, inFlight: 0, failovers: 0 })
    for (const gate of Object.values(gates)) gate.resolve()
  })

  it('under 50 concurrent calls of effects none: all succeed elsewhere, and it is out of the choice at once', async () => {
    const { work, gates, started, providers, caller } = await scene('none', ['a', 'b', 'c'])
    const calls = Array.from({ length: 50 }, () => caller.request(work, 1))
    await until(() => started.length === 50)
    const [victim] = started as [string]
    for (const [name, gate] of Object.entries(gates)) if (name !== victim) gate.resolve()
    await providers[victim]?.stop({ drainMs: 0 })
    const answers = await Promise.all([...calls, ...Array.from({ length: 30 }, () => caller.request(work, 1))])
    expect(answers.filter(({ agent }) => agent === victim)).toEqual([])
    expect(caller.balance()).toMatchObject({ calls: 80, succeeded: 80, inFlight: 0 })
    const left = (await caller.find({ capability: 'work' })).filter(({ usable }) => usable)
    expect(left.map(({ agentId }) => agentId).sort()).toEqual(['a', 'b', 'c'].filter((name) => name !== victim))
    gates[victim]?.resolve()
  })
})

describe('a provider that is gone for good', () => {
  it('when all candidates fail, the error is that of the last, with every attempt', async () => {
    const { work, started, providers, caller, gates } = await scene('none', ['a', 'b'])
    const answer = caller.request(work, 1, { timeoutMs: 20_000 })
    answer.catch(() => undefined)
    await until(() => started.length === 1)
    await providers[started[0] as string]?.stop({ drainMs: 0 })
    await until(() => started.length === 2)
    await providers[started[1] as string]?.stop({ drainMs: 0 })
    const error = await answer.catch((caught: unknown) => caught)
    if (!isHermesError(error)) throw error
    expect(error.code).not.toBe('NO_CANDIDATE')
    expect(new Set(error.attempts.map(({ agentId }) => agentId))).toEqual(new Set(['a', 'b']))
    for (const gate of Object.values(gates)) gate.resolve()
  })
})

describe('F-27 old addresses keep being used', () => {
  it('a callee that moves to another port three times, called once per 100 ms: at most one failed call per move', async () => {
    const work = contractOf('none')
    const provide = (peer: Peer) => peer.provide(work, async () => 'here')
    let callee = await team.start('callee', provide)
    const caller = await team.start('caller')
    await caller.manifest('callee')
    let gone = false
    let begun = 0
    const calls: Promise<unknown>[] = []
    const failures: { code: unknown; whileGone: boolean }[] = []
    const begin = () => {
      begun++
      // Between its stop and its start nobody is there to be called.
      const whileGone = gone
      const code = (error: unknown) => (isHermesError(error) ? error.code : error)
      const call = caller.call(work, 1, { timeoutMs: 10_000 })
      calls.push(call.catch((error: unknown) => failures.push({ code: code(error), whileGone })))
    }
    const addresses = new Set(callee.addresses)
    const pace = setInterval(begin, 100)
    try {
      for (let move = 0; move < 3; move++) {
        const before = begun
        await until(() => begun >= before + 3)
        gone = true
        await callee.stop()
        callee = await team.start('callee', provide)
        gone = false
        addresses.add(callee.addresses[0] as string)
        // Reached at its new address from now on.
        expect(await caller.call(work, 1, { timeoutMs: 10_000 })).toBe('here')
      }
    } finally {
      clearInterval(pace)
    }
    await Promise.all(calls)
    expect(addresses.size).toBe(4)
    expect(begun).toBeGreaterThanOrEqual(9)
    const avoidable = failures.filter(({ whileGone }) => !whileGone)
    expect(avoidable.length, JSON.stringify(failures)).toBeLessThanOrEqual(3)
    expect(
      failures.filter(
        ({ code }) =>
          !/^(NO_CANDIDATE|DIRECTORY_UNREACHABLE|PEER_UNREACHABLE|DRAINING|CALLER_GONE)$/.test(String(code)),
      ),
    ).toEqual([])
    expect(caller.balance().inFlight).toBe(0)
    // Dead instances fill no candidate list.
    const known = await caller.find({ capability: 'work' })
    expect(known.map(({ agentId }) => agentId)).toEqual(['callee'])
  })
})
