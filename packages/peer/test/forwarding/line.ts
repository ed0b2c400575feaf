import { capability, type HermesError, isHermesError } from '@hermes-peer/protocol'
import { type TestNetwork, type TestNetworkOptions, testNetwork } from '@hermes-peer/testkit'
import { onTestFinished } from 'vitest'
import * as z from 'zod'
import type { CallContext, Peer } from '../../src/api.ts'
import type { PeerOptions } from '../../src/options.ts'
import type { AnyEvent, EventName, EventOf } from '../../src/telemetry/events.ts'

export const contractOf = (name: string, effects: 'none' | 'idempotent' | 'once') =>
  capability(name, {
    description: 'Works.',
    input: z.object({ n: z.number() }),
    output: z.object({ by: z.string(), n: z.number() }),
    partial: z.object({ plan: z.string() }),
    errors: { TOO_LARGE: z.object({ max: z.number() }) },
    effects,
  })

/** The same work, by what a repeated run would do. */
export const WORK = { none: contractOf('work-none', 'none'), once: contractOf('work-once', 'once') }
export type Work = (typeof WORK)['none']
export type Serve = (input: { n: number }, ctx: CallContext<Work>) => ReturnType<Parameters<typeof provideWork>[1]>

function provideWork(peer: Peer, handler: Parameters<typeof peer.provide<Work>>[1]): void {
  for (const contract of Object.values(WORK)) peer.provide(contract, handler)
}

/** Peers of which only those that stand next to each other can reach each other. */
export interface Line {
  readonly net: TestNetwork
  /** The first of them, who calls. */
  readonly a: Peer
  peer(agentId: string): Peer
  /** Contexts of all handlers started, with who it was. */
  readonly started: { readonly by: string; readonly ctx: CallContext<Work>; readonly n: number }[]
  of<K extends EventName>(agentId: string, type: K): EventOf<K>[]
  /** Lets time pass until the condition holds. */
  until(condition: () => boolean, what: string): Promise<void>
  /** The error that a call ends with. */
  failure(call: Promise<unknown>): Promise<HermesError>
}

export interface LineOptions extends TestNetworkOptions {
  /** What each does with the work; who is left out does not provide it. */
  serve: Readonly<Record<string, Serve>>
  tuning?: PeerOptions['tuning']
  /** Nobody hears of anybody by presence. */
  deaf?: boolean
  /** More pairs that can reach each other. */
  also?: readonly (readonly [string, string])[]
}

export async function line(names: string, { serve, tuning, deaf, also = [], ...options }: LineOptions): Promise<Line> {
  const net = testNetwork(options)
  onTestFinished(() => net[Symbol.asyncDispose]())
  const ids = [...names]
  const near = (a: number, b: number) =>
    b - a === 1 || also.some((pair) => pair.includes(ids[a] as string) && pair.includes(ids[b] as string))
  for (let a = 0; a < ids.length; a++) {
    for (let b = a + 1; b < ids.length; b++) {
      if (!near(a, b)) net.faults.apart(net.peerId(ids[a] as string), net.peerId(ids[b] as string))
    }
  }
  if (deaf) net.faults.gossip({ loss: 1 })
  const started: Line['started'] = []
  const events: [string, AnyEvent][] = []
  net.onEvent((agentId, event) => events.push([agentId, event]))
  const peers: Record<string, Peer> = {}
  for (const [index, id] of ids.entries()) {
    const bootstrap = ids
      .slice(0, index)
      .filter((_, other) => near(other, index))
      .map((other) => peers[other]?.addresses[0] as string)
    peers[id] = await net.until(
      net.launch(
        id,
        (peer) => {
          const handler = serve[id]
          if (!handler) return
          provideWork(peer, (input, ctx) => {
            started.push({ by: id, ctx: ctx as never, n: input.n })
            return handler(input, ctx as never)
          })
        },
        { bootstrap, ...(tuning ? { tuning } : {}) },
      ),
    )
  }
  // Everyone has heard of everyone who can be heard of.
  await net.advance('12s')
  return {
    net,
    a: peers.a as Peer,
    peer: (id) => peers[id] as Peer,
    started,
    of: (agentId, type) =>
      events.filter(([id, event]) => id === agentId && event.type === type).map(([, event]) => event as never),
    async until(condition, what) {
      for (let waited = 0; !condition(); waited += 10) {
        if (waited > 120_000) throw new Error(`${what} did not come true within two minutes`)
        await net.advance(10)
      }
    },
    async failure(call) {
      try {
        await net.until(call)
      } catch (error) {
        if (isHermesError(error)) return error
        throw error
      }
      throw new Error('it succeeded')
    },
  }
}

/** Ends never, but for its signal. */
export const forever: Serve = (_, ctx) =>
  new Promise((_resolve, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)))

/** Resolves with the result when told to. */
export function gated(by: string): { serve: Serve; open(): void } {
  let open = (): void => undefined
  const gate = new Promise<void>((resolve) => {
    open = resolve
  })
  return { serve: async ({ n }) => gate.then(() => ({ by, n })), open: () => open() }
}
