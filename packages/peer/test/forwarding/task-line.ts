import {
  capability,
  decodeFrame,
  decodeHeader,
  type Header,
  HermesError,
  MAX_SINGLE_FRAME,
  Reader,
} from '@hermes-peer/protocol'
import { type TestNetwork, testNetwork } from '@hermes-peer/testkit'
import { onTestFinished } from 'vitest'
import * as z from 'zod'
import type { CallContext, Handler, Peer, TaskHandle, TaskUpdate } from '../../src/api.ts'
import type { PeerOptions } from '../../src/options.ts'
import type { AnyEvent, EventName, EventOf } from '../../src/telemetry/events.ts'

const jobOf = (name: string, effects: 'none' | 'once') =>
  capability(name, {
    description: 'Takes long.',
    input: z.object({ n: z.number() }),
    output: z.object({ by: z.string(), n: z.number() }),
    partial: z.object({ so_far: z.number() }),
    asks: { question: z.object({ go_on: z.string() }), answer: z.object({ yes: z.boolean() }) },
    errors: { REFUSED: z.object({ by: z.string() }) },
    effects,
  })

/** The same long work, by what a repeated run would do. */
export const JOB = { none: jobOf('job-none', 'none'), once: jobOf('job-once', 'once') }
export type Job = (typeof JOB)['none']
export type Does = (input: { n: number }, ctx: CallContext<Job>) => ReturnType<Handler<Job>>

export interface TaskLine {
  readonly net: TestNetwork
  peer(agentId: string): Peer
  /** Who was started, in order. */
  readonly started: { readonly by: string; readonly ctx: CallContext<Job> }[]
  /** Starts it (again): the same disk, whoever stands next to it for a beginning. */
  launch(agentId: string): Promise<Peer>
  /** Kills it and starts it again, after that time. */
  restart(agentId: string, afterMs?: number): Promise<void>
  of<K extends EventName>(agentId: string, type: K): EventOf<K>[]
  until(condition: () => boolean, what: string): Promise<void>
  code(work: Promise<unknown>): Promise<string>
}

export interface TaskLineOptions {
  readonly also?: readonly string[]
  /** By agent id. */
  readonly tuning?: Readonly<Record<string, PeerOptions['tuning']>>
  /** Those without a journal. */
  readonly memory?: string
  /** Whether such an envelope never arrives. */
  readonly lose?: (from: string, to: string, header: Header) => boolean
  /** Whether an envelope comes twice. */
  readonly repeat?: () => boolean
  readonly seed?: number
}

/** Peers that reach only those next to them, and `also` the pairs named. */
export async function taskLine(
  names: string,
  does: Readonly<Record<string, Does>>,
  { also = [], tuning, memory = '', lose = () => false, repeat = () => false, seed = 5 }: TaskLineOptions = {},
): Promise<TaskLine> {
  const net = testNetwork({
    seed,
    sendFilter: (from) => (to, frame, deliver) => {
      const bare = decodeFrame(new Reader(frame).part(MAX_SINGLE_FRAME, 'a frame'))
      if (bare.tag === 2 || !lose(from, to, decodeHeader(bare.header))) deliver(frame)
      if (repeat()) deliver(frame)
    },
  })
  onTestFinished(() => net[Symbol.asyncDispose]())
  const ids = [...names]
  const near = (one: string, other: string): boolean =>
    Math.abs(names.indexOf(one) - names.indexOf(other)) === 1 ||
    also.some((pair) => pair.includes(one) && pair.includes(other))
  for (const one of ids)
    for (const other of ids) if (one < other && !near(one, other)) net.faults.apart(net.peerId(one), net.peerId(other))
  const peers = new Map<string, Peer>()
  const started: TaskLine['started'] = []
  const events: [string, AnyEvent][] = []
  net.onEvent((agentId, event) => events.push([agentId, event]))
  const launch = async (id: string): Promise<Peer> => {
    const bootstrap = [...peers]
      .filter(([other]) => near(id, other))
      .flatMap(([, { addresses }]) => addresses.slice(0, 1))
    const peer = await net.until(
      net.launch(
        id,
        (made) => {
          const handler = does[id]
          if (!handler) return
          for (const contract of Object.values(JOB))
            made.provide(contract as Job, (input, ctx) => {
              started.push({ by: id, ctx })
              return handler(input, ctx)
            })
        },
        {
          bootstrap,
          ...(tuning?.[id] ? { tuning: tuning[id] } : {}),
          ...(memory.includes(id) ? { journal: false as const } : {}),
        },
      ),
    )
    peers.set(id, peer)
    return peer
  }
  for (const id of ids) await launch(id)
  // Everyone has heard of everyone who can be heard of.
  await net.advance('12s')
  return {
    net,
    started,
    launch,
    peer: (id) => peers.get(id) as Peer,
    async restart(id, afterMs = 100) {
      await net.crash(id)
      peers.delete(id)
      await net.advance(afterMs)
      await launch(id)
    },
    of: (agentId, type) =>
      events.filter(([id, event]) => id === agentId && event.type === type).map(([, event]) => event as never),
    async until(condition, what) {
      for (let waited = 0; !condition(); waited += 10) {
        if (waited > 120_000) throw new Error(`${what} did not come true within two minutes`)
        await net.advance(10)
      }
    },
    code: (work) =>
      net.until(
        work.then(
          () => 'OK',
          (error: unknown) => HermesError.from(error).declared?.name ?? HermesError.from(error).code,
        ),
        { limitMs: 3_600_000 },
      ),
  }
}

export const to =
  (next: string): Does =>
  (_, ctx) =>
    ctx.forward(next)

/** Resolves with the result once it is told to. */
export function gated(by: string): { does: Does; open(): void } {
  let open = (): void => undefined
  const gate = new Promise<void>((resolve) => {
    open = resolve
  })
  return {
    async does({ n }, { signal }) {
      await Promise.race([
        gate,
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      ])
      return { by, n }
    },
    open: () => open(),
  }
}

/** Follows a task to its end; says yes to what it asks, unless that was said before. */
export async function follow(
  task: TaskHandle<Job>,
  { after = 0, silent = false } = {},
): Promise<{ told: string[]; numbers: number[] }> {
  const told: string[] = []
  const numbers: number[] = []
  for await (const update of task.updates({ after })) {
    told.push(inShort(update))
    numbers.push(update.n)
    if (update.type === 'question' && !silent) await update.answer({ yes: true })
  }
  return { told, numbers }
}

function inShort(update: TaskUpdate<Job>): string {
  switch (update.type) {
    case 'progress':
      return `progress ${update.fraction}`
    case 'partial':
      return `partial ${update.data.so_far}`
    case 'question':
      return `question ${update.question.go_on}`
    default:
      return `${update.type} ${update.state}`
  }
}
