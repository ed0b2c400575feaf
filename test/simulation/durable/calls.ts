import { capability, type Peer } from 'hermes-peer'
import { z } from 'zod'
import type { WorkContext } from '../stage.ts'
import { type MadeCall, track } from '../workload.ts'
import { BOUNDS } from './bounds.ts'

const output = z.object({ id: z.string(), by: z.string() })

/** Short work that must not be repeated. */
const ONCE = capability('call_once', {
  description: 'Does simulated short work, never twice.',
  input: z.object({ id: z.string(), ms: z.number() }),
  output,
  effects: 'once',
  constraints: { maxConcurrency: BOUNDS.concurrency.call_once },
})

/** Work that goes from agent to agent: each asks the next of `ring` in its own name, or hands it on to the next of `hops`. */
const RELAY = capability('relay', {
  description: 'Passes simulated work on.',
  input: z.object({ id: z.string(), ring: z.array(z.string()), hops: z.array(z.string()) }),
  output,
  effects: 'none',
})

const PIECES = capability('pieces', {
  description: 'Yields so many pieces.',
  input: z.object({ id: z.string(), pieces: z.number(), ms: z.number() }),
  yields: z.object({ n: z.number() }),
  output,
  effects: 'none',
  constraints: { maxConcurrency: BOUNDS.concurrency.pieces },
})

/** A stream as its reader saw it. */
export interface MadeStream {
  readonly id: string
  readonly pieces: number
  /** Numbers of the pieces, in the order they were read. */
  readonly read: number[]
  code: string | undefined
}

/** A call inside of a session with a lease. */
export interface LeasedCall {
  readonly id: string
  /** Virtual ms at which the lease was over for the caller. */
  readonly leaseEndsAt: number
}

export interface CallsContext extends WorkContext {
  readonly agents: readonly string[]
  readonly calls: MadeCall[]
  readonly streams: MadeStream[]
  readonly leased: LeasedCall[]
}

/** How much longer than the lease work takes that is to be under way at its end, ms. */
const AFTER_LEASE_MS = 500

export function provideCalls(peer: Peer, context: CallsContext): void {
  const by = peer.agentId
  const ran = (id: string, { messageId, caller }: { messageId: string; caller: string }) =>
    context.ran({ id, agentId: by, messageId, caller })
  peer.provide(ONCE, async ({ id, ms }, ctx) => {
    ran(id, ctx)
    await context.sleep(by, ms, ctx.signal)
    return { id, by }
  })
  peer.provide(RELAY, async ({ id, ring, hops }, ctx) => {
    ran(id, ctx)
    const next = hops[ctx.via.length]
    if (next !== undefined) return ctx.forward(next)
    const [agent, ...rest] = ring
    if (agent !== undefined) {
      const about = { id: `${id}~${by}`, from: by, timeoutMs: Math.ceil(ctx.remainingMs()) }
      const below = { id: about.id, ring: [...rest, agent], hops: [] }
      await ask(about, context, () => peer.call(RELAY, below, { agent, ordered: false }))
    }
    return { id, by }
  })
  peer.provide(PIECES, async function* ({ id, pieces, ms }, ctx) {
    ran(id, ctx)
    for (let n = 0; n < pieces; n++) {
      await context.sleep(by, ms, ctx.signal)
      yield { n }
    }
    return { id, by }
  })
}

/** Records a call to its end; rejects with what it ends with. */
async function ask(about: About, context: CallsContext, start: () => Promise<Output | undefined>): Promise<void> {
  context.asked(about.id, about.from)
  const given = start()
  await track(about, context, () => given)
  await given
}

type Output = { id: string; by: string }
type About = Pick<MadeCall, 'id' | 'from' | 'timeoutMs'>

/** The ways in which work that is no task is asked for. */
export type CallKind = 'call' | 'burst' | 'stream' | 'handOn' | 'ring' | 'lease'

/** Asks for work of one kind, drawn from `random`. */
export function makeCalls(kind: CallKind, peer: Peer, agent: string, context: CallsContext): void {
  const { random, calls, agents } = context
  const from = peer.agentId
  const about = (): About => ({
    id: `${from}-${kind}-${calls.length}`,
    from,
    timeoutMs: random.pick([1_500, 8_000, 13_000]),
  })
  // What waits for nobody else's envelopes gets further while so many are lost.
  const ordered = random.chance(0.3)
  const once = (ms: number, one = about(), to?: string): void =>
    quietly(ask(one, context, () => peer.call(ONCE, { id: one.id, ms }, { timeoutMs: one.timeoutMs, ...named(to) })))
  const relay = (more: { ring?: string[]; hops?: string[] }, one = { ...about(), timeoutMs: 13_000 }): void =>
    quietly(
      ask(one, context, () =>
        peer.call(RELAY, { id: one.id, ring: [], hops: [], ...more }, { agent, timeoutMs: one.timeoutMs, ordered }),
      ),
    )
  const others = random.shuffle(agents.filter((id) => id !== agent && id !== from))
  if (kind === 'call') once(random.pick([0, 50, 400, 2_000]), about(), random.chance(0.5) ? agent : undefined)
  else if (kind === 'burst') for (let i = 0; i < BURST; i++) once(1_000, about(), agent)
  else if (kind === 'stream') readStream(peer, random.chance(0.5) ? agent : undefined, about(), context)
  else if (kind === 'handOn') relay({ hops: others.slice(0, random.int(1, 2)) })
  else if (kind === 'ring') relay({ ring: [...others.slice(0, 2), agent] })
  else quietly(holdLease(peer, agent, about, context))
}

function readStream(peer: Peer, to: string | undefined, about: About, context: CallsContext): void {
  const { random, streams } = context
  const input = { id: about.id, pieces: random.int(1, 20), ms: random.pick([5, 50, 500]) }
  const read: number[] = []
  const made: MadeStream = { id: about.id, pieces: input.pieces, read, code: undefined }
  streams.push(made)
  // A slow reader slows its writer down.
  const readMs = random.pick([0, 0, 200])
  const all = async (): Promise<Output> => {
    const stream = peer.stream(PIECES, input, { timeoutMs: about.timeoutMs, ...named(to) })
    for await (const { n } of stream) {
      read.push(n)
      if (readMs > 0) await context.sleep(about.from, readMs, new AbortController().signal)
    }
    const result = await stream.result
    made.code = 'OK'
    return result
  }
  quietly(ask(about, context, all))
}

/** A session with a lease: work within it, work that is under way when it ends, and work that comes too late. */
async function holdLease(peer: Peer, agent: string, about: () => About, context: CallsContext): Promise<void> {
  const { random, calls, leased } = context
  const leaseMs = random.int(500, 2_500)
  const opening = { ...about(), timeoutMs: 3_000 }
  const opened = peer.session(agent, { leaseMs, timeoutMs: opening.timeoutMs })
  await ask(opening, context, () => opened.then(() => ({ id: opening.id, by: NOBODY })))
  const session = await opened
  const leaseEndsAt = context.now() + leaseMs
  const work = async (ms: number): Promise<void> => {
    const one = { ...about(), id: `${opening.id}-${calls.length}`, timeoutMs: leaseMs + 3_000 }
    leased.push({ id: one.id, leaseEndsAt })
    await ask(one, context, () => session.call(ONCE, { id: one.id, ms }, { timeoutMs: one.timeoutMs }))
  }
  quietly(work(random.int(0, 200)))
  await work(leaseMs + AFTER_LEASE_MS).catch(() => undefined)
  await work(0)
}

/** More than may be in flight and wait together. */
const BURST = BOUNDS.inFlightPerPeer + BOUNDS.outboxPerPeer + 3
/** Who answers when it is not work that was asked for. */
export const NOBODY = ''

const named = (agent: string | undefined) => (agent === undefined ? {} : { agent })

/** What it ends with is in the records. */
function quietly(work: Promise<void>): void {
  work.catch(() => undefined)
}
