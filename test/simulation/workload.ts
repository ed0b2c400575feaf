import type { SeededRandom } from '@hermes-peer/testkit'
import { capability, HermesError, type Peer } from 'hermes-peer'
import { z } from 'zod'

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

/** One call that the workload has made, and how it ended. */
export interface MadeCall {
  readonly id: string
  readonly from: string
  readonly effects: Effects
  /** Virtual ms. */
  readonly at: number
  readonly timeoutMs: number
  /** The caller's process died before it ended: nobody is left to be told. */
  orphaned: boolean
  endedAt: number | undefined
  code: string | undefined
  messageId: string | undefined
  /** Agent whose handler made the output, for calls that succeeded. */
  by: string | undefined
}

/** What a handler did: input id and the agent that ran it. */
export interface HandlerRun {
  readonly id: string
  readonly agentId: string
  readonly messageId: string
  readonly caller: string
  readonly life: number
}

export interface WorkloadContext {
  readonly random: SeededRandom
  now(): number
  /** Resolves after virtual time, unless the life it belongs to has ended. */
  sleep(agentId: string, ms: number, signal: AbortSignal): Promise<void>
  ran(run: Omit<HandlerRun, 'life'>): void
}

/** Gives a peer its handlers: they wait, sometimes refuse, sometimes call on. */
export function provideWork(peer: Peer, context: WorkloadContext): void {
  const { random } = context
  for (const effects of ['none', 'idempotent', 'once'] as const) {
    peer.provide(WORK[effects], async ({ id, ms, nested }, ctx) => {
      context.ran({ id, agentId: peer.agentId, messageId: ctx.messageId, caller: ctx.caller })
      await context.sleep(peer.agentId, ms, ctx.signal)
      if (random.chance(0.03)) throw ctx.error('REFUSED', { id })
      if (nested) await peer.call(WORK.none, { id: nested, ms: ms / 2 })
      return { id, by: peer.agentId }
    })
  }
}

/** Makes one call drawn from `random` and records it. */
export function makeCall(
  peer: Peer,
  agents: readonly string[],
  number: number,
  context: WorkloadContext,
  forced: { effects?: Effects; agent?: string } = {},
): MadeCall {
  const { random } = context
  const effects = forced.effects ?? random.pick(['none', 'idempotent', 'once', 'once'] as const)
  const timeoutMs = random.pick([3_000, 8_000, 15_000, 30_000])
  const id = `${peer.agentId}-${number}`
  const cancelAfter = random.chance(0.08) ? random.int(10, 3_000) : undefined
  const agent =
    forced.agent ?? (random.chance(0.3) ? random.pick(agents.filter((other) => other !== peer.agentId)) : undefined)
  const made: MadeCall = {
    id,
    from: peer.agentId,
    effects,
    at: context.now(),
    timeoutMs,
    orphaned: false,
    endedAt: undefined,
    code: undefined,
    messageId: undefined,
    by: undefined,
  }
  const abort = new AbortController()
  if (cancelAfter !== undefined) {
    void context.sleep(peer.agentId, cancelAfter, abort.signal).then(
      () => abort.abort(),
      () => undefined,
    )
  }
  const ended = (code: string) => {
    made.code = code
    made.endedAt = context.now()
  }
  peer
    .request(
      WORK[effects],
      {
        id,
        ms: random.pick([0, 5, 50, 400, 2_000]),
        ...(random.chance(0.1) ? { nested: `${id}-nested` } : {}),
      },
      { timeoutMs, signal: abort.signal, ...(agent === undefined ? {} : { agent }) },
    )
    .then(
      (answer) => {
        made.messageId = answer.messageId
        made.by = answer.output?.by
        ended(answer.output?.id === id ? 'OK' : 'WRONG_ANSWER')
      },
      (thrown: unknown) => {
        const error = HermesError.from(thrown, 'INTERNAL')
        made.messageId = error.messageId
        ended(error.declared?.name ?? error.code)
      },
    )
    .catch(() => undefined)
  return made
}
