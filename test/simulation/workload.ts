import { capability, HermesError, type Peer } from 'hermes-peer'
import { z } from 'zod'
import type { WorkContext } from './stage.ts'

const input = z.object({ id: z.string(), ms: z.number(), nested: z.string().optional() })
const output = z.object({ id: z.string(), by: z.string() })
const errors = { REFUSED: z.object({ id: z.string() }) }

/** One capability for each kind of effects; all peers provide all of them. */
export const WORK = {
  none: capability('work_none', {
    description: 'Does simulated work that changes nothing.',
    input,
    output,
    errors,
    effects: 'none',
  }),
  idempotent: capability('work_idempotent', {
    description: 'Does simulated work that may be repeated.',
    input,
    output,
    errors,
    effects: 'idempotent',
  }),
  once: capability('work_once', {
    description: 'Does simulated work that must not be repeated.',
    input,
    output,
    errors,
    effects: 'once',
    constraints: { maxConcurrency: 4 },
  }),
} as const

export type Effects = keyof typeof WORK

/** One call that a workload has made, and how it ended. */
export interface MadeCall {
  readonly id: string
  readonly from: string
  /** Virtual ms. */
  readonly at: number
  readonly timeoutMs: number
  /** The caller's process died before it ended: nobody is left to be told. */
  orphaned: boolean
  endedAt: number | undefined
  code: string | undefined
  /** Agent whose handler made the output, for calls that succeeded. */
  by: string | undefined
}

/** Records a call from now to its end; resolves when it has ended, with its code. */
export async function track(
  about: Pick<MadeCall, 'id' | 'from' | 'timeoutMs'>,
  { now, calls }: { now(): number; readonly calls: MadeCall[] },
  start: () => Promise<{ id: string; by: string } | undefined>,
): Promise<string> {
  const made: MadeCall = { ...about, at: now(), orphaned: false, endedAt: undefined, code: undefined, by: undefined }
  calls.push(made)
  let code: string
  try {
    const output = await start()
    made.by = output?.by
    code = output?.id === about.id ? 'OK' : 'WRONG_ANSWER'
  } catch (thrown) {
    const error = HermesError.from(thrown, 'INTERNAL')
    code = error.declared?.name ?? error.code
  }
  made.code = code
  made.endedAt = now()
  return code
}

/** What a handler did: input id and the agent that ran it. */
export interface HandlerRun {
  readonly id: string
  readonly agentId: string
  readonly messageId: string
  readonly caller: string
  readonly life: number
}

/** Gives a peer its handlers: they wait, sometimes refuse, sometimes call on. */
export function provideWork(peer: Peer, context: WorkContext): void {
  const { random } = context
  for (const effects of ['none', 'idempotent', 'once'] as const) {
    peer.provide(WORK[effects], async ({ id, ms, nested }, ctx) => {
      context.ran({ id, agentId: peer.agentId, messageId: ctx.messageId, caller: ctx.caller })
      await context.sleep(peer.agentId, ms, ctx.signal)
      if (random.chance(0.03)) throw ctx.error('REFUSED', { id })
      if (nested) {
        context.asked(nested, peer.agentId)
        await peer.call(WORK.none, { id: nested, ms: ms / 2 })
      }
      return { id, by: peer.agentId }
    })
  }
}

/** Makes one call drawn from `random` and records it. */
export function makeCall(
  peer: Peer,
  agents: readonly string[],
  context: WorkContext & { readonly calls: MadeCall[] },
  forced: { effects?: Effects; agent?: string } = {},
): void {
  const { random, calls } = context
  const from = peer.agentId
  const effects = forced.effects ?? random.pick(['none', 'idempotent', 'once', 'once'] as const)
  const timeoutMs = random.pick([3_000, 8_000, 15_000, 30_000])
  const id = `${from}-${calls.length}`
  const cancelAfter = random.chance(0.08) ? random.int(10, 3_000) : undefined
  const agent = forced.agent ?? (random.chance(0.3) ? random.pick(agents.filter((other) => other !== from)) : undefined)
  const input = {
    id,
    ms: random.pick([0, 5, 50, 400, 2_000]),
    ...(random.chance(0.1) ? { nested: `${id}-nested` } : {}),
  }
  const abort = new AbortController()
  if (cancelAfter !== undefined) {
    void context.sleep(from, cancelAfter, abort.signal).then(
      () => abort.abort(),
      () => undefined,
    )
  }
  context.asked(id, from)
  const options = { timeoutMs, signal: abort.signal, ...(agent === undefined ? {} : { agent }) }
  void track({ id, from, timeoutMs }, context, () => peer.call(WORK[effects], input, options))
}
