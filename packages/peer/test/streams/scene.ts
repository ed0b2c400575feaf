import { capability, type HermesError } from '@hermes-peer/protocol'
import { type TestNetwork, type TestNetworkOptions, testNetwork } from '@hermes-peer/testkit'
import { onTestFinished } from 'vitest'
import * as z from 'zod'
import type { Peer, ResultStream, StreamHandler } from '../../src/api.ts'
import type { Tunables } from '../../src/defaults.ts'
import type { AnyEvent, EventName, EventOf } from '../../src/telemetry/events.ts'

/** Counts up to what it is given, piece by piece. */
export const count = capability('count', {
  description: 'Counts.',
  input: z.object({ to: z.number(), pad: z.string().optional() }),
  output: z.object({ total: z.number() }),
  yields: z.object({ n: z.number(), pad: z.string().optional() }),
  errors: { TOO_FAR: z.object({ most: z.number() }) },
  effects: 'none',
})
export const countOnce = capability('count_once', {
  description: 'Counts, once.',
  input: z.object({ to: z.number() }),
  output: z.object({ total: z.number() }),
  yields: z.object({ n: z.number() }),
})

/** What a handler of the scene has been through. */
export interface Handled {
  by: string
  yielded: number
  /** Code of the reason its signal fired with. */
  aborted: string | undefined
  /** Its `finally` has run. */
  cleaned: boolean
}

export interface Scene {
  net: TestNetwork
  desk: Peer
  handled: Handled[]
  events: { of<K extends EventName>(agentId: string, type: K): EventOf<K>[] }
}

type Make = (net: TestNetwork, handled: Handled) => StreamHandler<typeof count>

/** A desk and providers of `count` in virtual time; the network is put away when the test ends. */
export async function scene(
  providers: Record<string, Make>,
  options: TestNetworkOptions & {
    tuning?: Partial<Tunables>
    /** Of the desk alone; default as the others. */
    deskTuning?: Partial<Tunables>
    /** Further agents. */
    others?: Record<string, (peer: Peer, net: TestNetwork) => unknown>
  } = {},
): Promise<Scene> {
  const { tuning = {}, deskTuning = tuning, others = {}, ...rest } = options
  const net = testNetwork({ seed: 3, ...rest })
  onTestFinished(() => net[Symbol.asyncDispose]())
  const all: [string, AnyEvent][] = []
  net.onEvent((agentId, event) => all.push([agentId, event]))
  const handled: Handled[] = []
  for (const [by, make] of Object.entries(providers)) {
    const serve: StreamHandler<typeof count> = async function* (input, context) {
      const one: Handled = { by, yielded: 0, aborted: undefined, cleaned: false }
      handled.push(one)
      context.signal.addEventListener('abort', () => {
        one.aborted = (context.signal.reason as HermesError).code
      })
      const inner = make(net, one)(input, context)
      try {
        for (;;) {
          const step = await inner.next()
          if (step.done) return step.value
          one.yielded++
          yield step.value
        }
      } finally {
        one.cleaned = true
        await inner.return({ total: 0 })
      }
    }
    await net.until(
      net.launch(by, (peer) => void peer.provide(count, serve).provide(countOnce, serve as never), { tuning }),
    )
  }
  for (const [by, prepare] of Object.entries(others)) {
    await net.until(net.launch(by, (peer) => void prepare(peer, net), { tuning }))
  }
  const desk = await net.peer('desk', { tuning: deskTuning })
  // Presence tells the desk of all of them.
  await net.advance('12s')
  return {
    net,
    desk,
    handled,
    events: {
      of: (agentId, type) =>
        all.flatMap(([id, event]) => (id === agentId && event.type === type ? [event as never] : [])),
    },
  }
}

/** Yields at once, one after the other. */
export const counting: Make = () =>
  async function* ({ to, pad }, context) {
    if (to > 1e6) throw context.error('TOO_FAR', { most: 1e6 })
    for (let n = 1; n <= to; n++) yield pad === undefined ? { n } : { n, pad }
    return { total: to }
  }

/** Yields one piece per time. */
export const ticking =
  (ms: number): Make =>
  (net) =>
    async function* ({ to }, { signal }) {
      for (let n = 1; n <= to; n++) {
        await net.sleep(ms, { signal })
        yield { n }
      }
      return { total: to }
    }

/** Reads a stream to its end, whatever that is. */
export async function readAll<T>(
  stream: ResultStream<never> | AsyncIterable<T>,
): Promise<{ pieces: T[]; error: HermesError | undefined }> {
  const pieces: T[] = []
  try {
    for await (const piece of stream as AsyncIterable<T>) pieces.push(piece)
    return { pieces, error: undefined }
  } catch (error) {
    return { pieces, error: error as HermesError }
  }
}
