// A peer in a process of its own, driven by messages of the test.
import { capability, createPeer, dhtDirectory, isHermesError, type PeerOptions, redisDirectory } from 'hermes-peer'
import * as z from 'zod'
import { type FromChild, free, type ToChild } from './process-messages.ts'

const { redis, ...options } = JSON.parse(process.argv[2] as string) as PeerOptions & { redis?: string }
const tell = (message: FromChild) => process.send?.(message)

/** Blocks the event loop: nothing of this process runs meanwhile, and no core is burnt for it. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

const blocker = capability('block', {
  description: 'Blocks its event loop.',
  input: z.number(),
  output: z.string(),
  effects: 'none',
})
const peer = createPeer({ ...options, ...(redis ? { directories: [dhtDirectory(), redisDirectory(redis)] } : {}) })
peer.provide(blocker, (ms) => {
  block(ms)
  return 'awake'
})
peer.provide(free, (text) => text)
peer.events.on('link.down', ({ agentId, code }) => tell({ type: 'link down', agentId, code }))

process.on('message', (message: ToChild) => {
  if (message.type === 'block') block(message.ms)
  else if (message.type === 'stop') void peer.stop().then(() => process.disconnect())
  else {
    const { agent, capability: name, input, timeoutMs } = message
    peer.callDynamic(name, input, { agent, timeoutMs }).then(
      (output) => tell({ type: 'result', output }),
      (error: unknown) => tell({ type: 'result', code: isHermesError(error) ? error.code : String(error) }),
    )
  }
})
// Whoever started this process may be gone without a word.
process.on('disconnect', () => process.exit())

await peer.start()
tell({ type: 'ready', address: peer.addresses[0] as string })
