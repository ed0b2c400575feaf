import { afterEach, describe, expect, test, vi } from 'vitest'

/**
 * A request with effects `once` is held up on its way while its link is cut; the caller asks what became of it, hears
 * `unseen`, and goes on elsewhere. Then the request arrives after all. Returns who started it.
 */
async function lateRequest(): Promise<string[]> {
  const { testNetwork } = await import('@hermes-peer/testkit')
  const { WORK } = await import('./workload.ts')
  let release = (): void => undefined
  let hold = false
  const starts: string[] = []
  const net = testNetwork({
    seed: 11,
    sendFilter: (agentId) => (_to, frame, deliver) => {
      if (agentId !== 'asker' || !hold) return deliver(frame)
      hold = false
      release = () => deliver(frame)
    },
  })
  const states: string[] = []
  net.onEvent((agentId, event) => {
    if (event.type === 'handler.started') starts.push(agentId)
    if (event.type === 'call.outcome') states.push(event.state)
  })
  for (const agentId of ['first', 'second']) {
    const peer = await net.peer(agentId)
    peer.provide(WORK.once, async ({ id }) => ({ id, by: agentId }))
  }
  const asker = await net.peer('asker')
  await net.advance('2s')
  expect((await net.until(asker.find({ capability: WORK.once.name }))).filter(({ usable }) => usable)).toHaveLength(2)
  hold = true
  const pending = asker.request(WORK.once, { id: 'x', ms: 0 })
  await net.advance(10)
  const to = net.calls(WORK.once)[0]?.to as string
  net.faults.cut(net.peerId('asker'), net.peerId(to), { afterBytes: 0 })
  // Something must pass for the cut to act: the probe of a silent link does.
  const answer = await net.until(pending)
  expect(answer.agent).not.toBe(to)
  expect(states).toContain('unseen')
  release()
  await net.advance('10s')
  await net[Symbol.asyncDispose]()
  return starts
}

afterEach(() => {
  vi.doUnmock('../../packages/peer/src/delivery/dedup.ts')
  vi.doUnmock('../../packages/peer/src/delivery/window.ts')
  vi.resetModules()
})

describe('"unseen" is a promise', () => {
  test('a request that comes after it is never started', async () => {
    expect(await lateRequest()).toHaveLength(1)
  })

  test('planted fault: a peer that says it without keeping it starts the work twice', async () => {
    vi.doMock('../../packages/peer/src/delivery/dedup.ts', async (original) => {
      const real = await original<typeof import('../../packages/peer/src/delivery/dedup.ts')>()
      return {
        ...real,
        createDedup: (options: Parameters<typeof real.createDedup>[0]) => {
          const dedup = real.createDedup(options)
          const bound = Object.fromEntries(
            (['find', 'begin', 'withdraw', 'finish', 'settle', 'sweep'] as const).map((name) => [
              name,
              dedup[name].bind(dedup),
            ]),
          )
          return { ...bound, refuse: () => true }
        },
      }
    })
    // The window would refuse the late one too, as its link is gone: both lines of defence are taken away.
    vi.doMock('../../packages/peer/src/delivery/window.ts', async (original) => {
      const real = await original<typeof import('../../packages/peer/src/delivery/window.ts')>()
      return {
        createWindow: (options: Parameters<typeof real.createWindow>[0]) => {
          const window = real.createWindow(options)
          return {
            offer: window.offer.bind(window),
            skip: window.skip.bind(window),
            heldAt: window.heldAt.bind(window),
            close: window.close.bind(window),
            advance: () => undefined,
          }
        },
      }
    })
    expect(await lateRequest()).toHaveLength(2)
  })
})
