import { deepFreeze, HermesError, LIMITS } from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import { type ContextRef, type ContextStore, createContextStore, isContextRef } from '../context/store.ts'
import type { Tunables } from '../defaults.ts'
import type { Directory } from '../directory/directory.ts'
import type { Random } from '../random.ts'
import type { HandledWork } from './handler-context.ts'
import { HEADER_ROOM } from './outcomes.ts'
import type { AskRuntime } from './system.ts'
import type { BuiltIn } from './unqueued.ts'

export interface PullOptions {
  /** Longest wait, ms. Default 10 s, and never longer than the handler's budget. */
  timeoutMs?: number
}

/** A call or a task, as far as its context is concerned. */
export type PullingWork = Pick<HandledWork, 'incoming' | 'deadline' | 'signal'>

export interface ContextRuntime {
  readonly store: ContextStore
  readonly builtIn: BuiltIn
  /** Pulls what the caller of that work refers to. */
  pull(work: PullingWork, ref: unknown, options?: PullOptions): Promise<unknown>
}

/** What stands around the data in an answer, bytes: a few keys and braces. */
const ANSWER_ROOM = 256

export function createContextRuntime(options: {
  agentId: string
  clock: Clock
  random: Random
  tunables: Tunables
  ask: AskRuntime
  directory: () => Directory
}): ContextRuntime {
  const { clock, tunables, ask, directory } = options
  const store = createContextStore({ ...options, mostEach: LIMITS.envelope - HEADER_ROOM - ANSWER_ROOM })
  return {
    store,
    builtIn: (input, { agentId }) => ({ data: store.read((input as { ref?: unknown } | null)?.ref, agentId) }),
    async pull(work, given, { timeoutMs = tunables.contextTimeoutMs } = {}) {
      if (!isContextRef(given)) {
        throw new HermesError('INVALID_PAYLOAD', {
          message: 'fetch: not a context reference, which has ref, agent_id, size',
        })
      }
      const { from, header } = work.incoming
      // Remote data decides on no connection: only who called is asked.
      if (given.agent_id !== from) {
        throw new HermesError('INVALID_PAYLOAD', {
          message: `fetch: the reference is to a context of ${given.agent_id}, the caller is ${from}`,
        })
      }
      const link = await directory().reach(from, work.signal)
      const left = Math.min(timeoutMs, work.deadline - clock.monotonic())
      const output = (await ask(
        link,
        'hermes.context',
        { ref: given.ref },
        { timeoutMs: Math.max(1, left), signal: work.signal, traceId: header.trace_id },
      )) as { data?: unknown } | null
      const data = output?.data
      return typeof data === 'object' && data !== null ? deepFreeze(data as never) : data
    },
  }
}

/** References as they are sent in the context of a call. Throws `INVALID_OPTION`. */
export function withRefs(
  context: Readonly<Record<string, unknown>> | undefined,
  refs: readonly ContextRef[] | undefined,
): Readonly<Record<string, unknown>> | undefined {
  if (refs === undefined) return context
  const refuse = (message: string, field: string): never => {
    throw new HermesError('INVALID_OPTION', { message, details: { field } })
  }
  if (!Array.isArray(refs) || refs.length > 64 || !refs.every(isContextRef))
    refuse('refs must be a list of at most 64 references that offerContext gave', 'refs')
  if (context && Object.hasOwn(context, 'refs')) refuse('context has refs already: give them one way', 'context.refs')
  return { ...context, refs }
}
