import { capability, createPeer, stopOnSignals } from 'hermes-peer'
import { z } from 'zod'
import { placesOf, SAFE, UNSAFE } from './contracts.ts'

/** One provider in a process of its own; tells its parent how it goes by messages, and ends with it. */
const { agentId, folder, bootstrap, extra, places } = JSON.parse(process.argv[2] as string) as {
  agentId: string
  folder: string
  bootstrap: string[]
  extra?: string
  places?: number
}
const say = (message: Record<string, unknown>) => process.connected && process.send?.(message)
process.on('disconnect', () => process.exit(0))

const peer = createPeer({ agentId, folder, bootstrap })
for (const contract of [SAFE, UNSAFE]) {
  peer.provide(contract, async ({ ms, id }, ctx) => {
    say({ type: 'started', id, capability: contract.name })
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(resolve, ms)
      ctx.signal.addEventListener('abort', () => {
        clearTimeout(timer)
        say({ type: 'aborted', id, reason: (ctx.signal.reason as { code?: string }).code })
        reject(ctx.signal.reason)
      })
    })
    return { by: agentId, pid: process.pid, id }
  })
}
if (extra) {
  const only = capability(extra, {
    description: 'Something that only this agent offers.',
    input: z.object({}),
    output: z.object({ by: z.string() }),
    effects: 'none',
  })
  peer.provide(only, () => ({ by: agentId }))
}
if (places) {
  let running = 0
  peer.provide(placesOf(places), async ({ ms }) => {
    const beside = ++running
    await new Promise((resolve) => setTimeout(resolve, ms))
    running--
    return { by: agentId, running: beside }
  })
}
stopOnSignals(peer, { drainMs: 6000 })
const startedAt = Date.now()
await peer.start()
say({ type: 'ready', startedAt, readyAt: Date.now(), addresses: peer.addresses })
process.on('message', async (message) => {
  if (message === 'stop') {
    await peer.stop()
    process.exit(0)
  }
  const { call, id } = message as { call: string; id: string }
  await new Promise<void>((resolve) => {
    const stop = peer.watch({ capability: SAFE.name, agent: call }, ({ type }) => {
      if (type !== 'joined') return
      queueMicrotask(() => stop())
      resolve()
    })
  })
  await peer.call(SAFE, { ms: 30_000, id }, { agent: call })
})
