import { setTimeout as sleep } from 'node:timers/promises'
import { capability } from '@hermes-peer/protocol'
import { createPeer, type Peer } from 'hermes-peer'
import { z } from 'zod'
import { frame } from '../payload.ts'
import { type Envelope, echo, type Row, type RowContext } from './peer.ts'

const Request = z.object({
  v: z.number(),
  id: z.string(),
  from: z.string(),
  to: z.string(),
  capability: z.string(),
  ts: z.number(),
  ttlMs: z.number(),
  trace: z.object({ traceId: z.string(), spanId: z.string(), depth: z.number() }),
  meta: z.object({
    contentType: z.string(),
    priority: z.number(),
    budget: z.object({ tokens: z.number(), usd: z.number() }),
    tags: z.array(z.string()),
  }),
  body: z.object({ text: z.string() }),
  by: z.string().optional(),
})

/** How long it may take until all providers are known, ms. */
const KNOWN_MS = 20_000

const contractOf = (name: string) =>
  capability(name, {
    description: 'Sends back what it gets.',
    input: Request,
    output: Request,
    effects: 'none',
  })

const framesOf = (name: string) =>
  capability(`${name}_frames`, {
    description: 'Sends as many pieces as it is asked for.',
    input: z.object({ count: z.number() }),
    output: z.object({ count: z.number() }),
    yields: z.object({ id: z.string(), seq: z.number(), chunk: z.string() }),
    effects: 'none',
  })

/** As a user runs it: keys and trust in a private folder, one known address to join through, nothing tuned. */
function peerOf({ folder, instance, addresses }: RowContext): Peer {
  return createPeer({ agentId: instance, folder, bootstrap: addresses })
}

export const row: Row = {
  async startServer(context) {
    const peer = await peerOf(context)
      .provide(contractOf(context.capability), (input) => echo(input, context))
      .provide(framesOf(context.capability), async function* ({ count }) {
        for (let seq = 0; seq < count; seq++) yield frame(seq)
        return { count }
      })
      .start()
    const [address] = peer.addresses
    if (address === undefined) throw new Error('the peer listens nowhere')
    return { address, close: () => peer.stop() }
  },

  async startClient(context) {
    const peer = await peerOf(context).start()
    const known = contractOf(context.capability)
    const frames = framesOf(context.capability)
    const request = (envelope: Envelope, name = context.capability) =>
      peer.call(name === context.capability ? known : contractOf(name), envelope, { timeoutMs: context.timeoutMs })
    return {
      request,
      async stream(count, onFrame) {
        const stream = peer.stream(frames, { count })
        for await (const piece of stream) onFrame(piece)
        await stream.result
      },
      async knows(count) {
        for (const end = performance.now() + KNOWN_MS; ; await sleep(20)) {
          const candidates = await peer.find({ capability: context.capability })
          if (candidates.filter((candidate) => candidate.usable).length >= count) return
          if (performance.now() > end) throw new Error(`fewer than ${count} providers are known`)
        }
      },
      close: () => peer.stop(),
    }
  },
}
