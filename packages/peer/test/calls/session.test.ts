import { capability, HermesError } from '@hermes-peer/protocol'
import { type TestNetwork, testNetwork } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import type { HandlerSession, Peer } from '../../src/api.ts'

const work = capability('work', {
  description: 'Takes as long as it is told, ms.',
  input: z.number(),
  output: z.string(),
  effects: 'once',
})

const codeOf = (run: Promise<unknown>): Promise<unknown> =>
  run.then(
    () => 'OK',
    (error: unknown) => HermesError.from(error).code,
  )

function provide(net: TestNetwork, peer: Peer) {
  const seen: (HandlerSession | undefined)[] = []
  const aborted: string[] = []
  peer.provide(work, async (ms, ctx) => {
    seen.push(ctx.session)
    ctx.signal.addEventListener('abort', () => aborted.push(HermesError.from(ctx.signal.reason).code))
    await net.sleep(ms, { signal: ctx.signal })
    return 'done'
  })
  return { seen, aborted }
}

async function scene(net: TestNetwork, tuning: object = {}) {
  const provider = await net.peer('provider', { tuning })
  const handled = provide(net, provider)
  const caller = await net.peer('caller', { tuning })
  await known(net, caller)
  return { provider, caller, ...handled }
}

async function known(net: TestNetwork, caller: Peer): Promise<void> {
  for (;;) {
    const found = await net.until(caller.find({ capability: 'work' }))
    if (found.some(({ usable }) => usable)) return
    await net.advance('100ms')
  }
}

describe('a session', () => {
  it('ties calls to one agent together, which the handler sees; calls outside of it have none', async () => {
    await using net = testNetwork({ seed: 81 })
    const { caller, seen } = await scene(net)
    const session = await net.until(caller.session({ contract: work }))
    expect(session.agent).toBe('provider')
    expect(session.id).toMatch(/^sess_[a-zA-Z0-9]{16}$/)
    expect(await net.until(session.call(work, 1))).toBe('done')
    await net.advance('1m')
    expect((await net.until(session.request(work, 1))).agent).toBe('provider')
    expect(await net.until(caller.call(work, 1))).toBe('done')
    expect(seen.map((one) => one?.id)).toEqual([session.id, session.id, undefined])
    expect(seen[0]).toMatchObject({ caller: 'caller', since: seen[1]?.since })
  })

  it('ends on both sides when it is closed: running calls of it are cancelled, others go on, later ones are refused', async () => {
    await using net = testNetwork({ seed: 82 })
    const { caller, seen, aborted } = await scene(net)
    const session = await net.until(caller.session('provider'))
    const other = await net.until(caller.session('provider'))
    const running = codeOf(session.call(work, 30_000))
    const outside = [codeOf(other.call(work, 2000)), codeOf(caller.call(work, 2000))]
    await net.timeline.runUntil(() => seen.length === 3)
    await session.close()
    expect(await net.until(running)).toBe('SESSION_CLOSED')
    expect((await session.closed).code).toBe('SESSION_CLOSED')
    expect(await codeOf(session.call(work, 1))).toBe('SESSION_CLOSED')
    expect(await codeOf(session.renew(1000))).toBe('SESSION_CLOSED')
    await session.close()
    await net.timeline.runUntil(() => seen[0]?.signal.aborted === true)
    expect(aborted).toHaveLength(1)
    expect(await net.until(Promise.all(outside))).toEqual(['OK', 'OK'])
  })

  it('closed by the other side: the next call learns it, and so does the session', async () => {
    await using net = testNetwork({ seed: 83 })
    // The provider's idle time is the shorter one.
    const provider = await net.peer('provider', { tuning: { sessionIdleMs: 3000 } })
    provide(net, provider)
    const caller = await net.peer('caller')
    await known(net, caller)
    const session = await net.until(caller.session('provider'))
    expect(await net.until(session.call(work, 8000))).toBe('done')
    await net.advance('2s')
    expect(await net.until(session.call(work, 1))).toBe('done')
    await net.advance('4s')
    expect(await net.until(codeOf(session.call(work, 1)))).toBe('SESSION_CLOSED')
    expect((await session.closed).remote).toBe(true)
  })

  it('F-38 a lease that is renewed goes on; one that is not ends on both sides with LEASE_EXPIRED and cancels the work', async () => {
    await using net = testNetwork({ seed: 84 })
    const { caller, seen, aborted } = await scene(net, { sessionIdleMs: 3000 })
    const session = await net.until(caller.session('provider', { leaseMs: 10_000 }))
    await net.advance('8s')
    expect(await net.until(session.call(work, 1))).toBe('done')
    await net.until(session.renew(10_000))
    await net.advance('8s')
    expect(await net.until(session.call(work, 1))).toBe('done')
    const running = codeOf(session.call(work, 30_000))
    await net.advance('3s')
    expect(await net.until(running)).toBe('LEASE_EXPIRED')
    expect((await session.closed).code).toBe('LEASE_EXPIRED')
    await net.timeline.runUntil(() => aborted.length === 1)
    expect(HermesError.from(seen[0]?.signal.reason).code).toBe('LEASE_EXPIRED')
    expect(await codeOf(session.renew(10_000))).toBe('LEASE_EXPIRED')
    expect(await codeOf(session.call(work, 1))).toBe('LEASE_EXPIRED')
  })

  it('survives the loss of its link, and a restart of the provider, which sees it as new', async () => {
    await using net = testNetwork({ seed: 85 })
    const { caller, seen } = await scene(net)
    const session = await net.until(caller.session('provider'))
    await net.until(session.call(work, 1))
    const lost: string[] = []
    caller.events.on('link.down', ({ agentId }) => lost.push(agentId))
    net.faults.cut(net.peerId('provider'), net.peerId('caller'))
    // The next bytes that pass break it.
    const breaking = codeOf(caller.call(work, 1))
    await net.timeline.runUntil(() => lost.length > 0)
    await net.until(breaking)
    await known(net, caller)
    expect(await net.until(session.call(work, 1))).toBe('done')
    expect(seen.at(-1)).toMatchObject({ id: session.id, since: seen[0]?.since })

    await net.crash('provider')
    const handled: { seen: (HandlerSession | undefined)[] }[] = []
    await net.until(
      net.launch('provider', (peer) => handled.push(provide(net, peer)), { bootstrap: [...caller.addresses] }),
    )
    await known(net, caller)
    expect(await net.until(session.call(work, 1))).toBe('done')
    const again = handled[0]?.seen[0]
    expect(again?.id).toBe(session.id)
    expect(again?.since).toBeGreaterThan(seen[0]?.since ?? Number.POSITIVE_INFINITY)
  })

  it('of a caller that has restarted is over at the provider', async () => {
    await using net = testNetwork({ seed: 86 })
    const { provider, caller, seen } = await scene(net)
    const session = await net.until(caller.session('provider'))
    await net.until(session.call(work, 1))
    await net.crash('caller')
    const back = await net.until(net.launch('caller', undefined, { bootstrap: [...provider.addresses] }))
    await net.timeline.runUntil(() => seen[0]?.signal.aborted === true)
    await known(net, back)
    expect(await net.until(back.call(work, 1))).toBe('done')
  })

  it('is disposed of by `await using`, ends with the peer, and is bounded with a clear error', async () => {
    await using net = testNetwork({ seed: 87 })
    const { caller } = await scene(net, { sessionsPerPeer: 3 })
    let kept: Promise<HermesError>
    {
      await using session = await net.until(caller.session('provider'))
      kept = session.closed
    }
    expect((await kept).code).toBe('SESSION_CLOSED')
    const open = []
    for (let i = 0; i < 3; i++) open.push(await net.until(caller.session('provider')))
    await expect(net.until(caller.session('provider'))).rejects.toMatchObject({
      code: 'BUSY',
      message: '3 sessions with provider are open, the bound is 3',
    })
    await net.until(caller.stop())
    expect((await (open[0] as { closed: Promise<HermesError> }).closed).code).toBe('STOPPED')
  })

  it.each([
    [{ idleMs: 0 }, 'idleMs'],
    [{ idleMs: 15 * 60_000 + 1 }, 'idleMs'],
    [{ leaseMs: 86_400_001 }, 'leaseMs'],
    [{ leaseMs: 1.5 }, 'leaseMs'],
  ])('options of %j are refused by the name of the field', async (options, field) => {
    await using net = testNetwork({ seed: 88 })
    const { caller } = await scene(net)
    await expect(caller.session('provider', options)).rejects.toMatchObject({ details: { field } })
  })
})
