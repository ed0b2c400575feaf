import { type Capability, type InputOf, newSessionId } from '@hermes-peer/protocol'
import type { Answer, CallOptions, SessionOptions, SessionTarget } from './api.ts'
import { served } from './calls/context.ts'
import { outputOf } from './calls/output.ts'
import { createSession, type Session } from './calls/session.ts'
import { checkSession, checkTarget } from './checks.ts'
import type { Tunables } from './defaults.ts'
import type { Random } from './random.ts'
import type { Candidate, Query } from './routing/query.ts'
import type { Runtime } from './runtime.ts'

export interface OpenSessionParts {
  runtime(): Runtime
  readonly tunables: Tunables
  readonly random: Random
  /** Bounds work by time and signal. */
  limited<T>(times: { timeoutMs?: number; signal?: AbortSignal }, work: (signal: AbortSignal) => Promise<T>): Promise<T>
  request<C extends Capability>(
    contract: C,
    input: InputOf<C>,
    options: CallOptions,
    sessionId: string,
  ): Promise<Answer<C>>
}

/** Finds the agent, makes the mark, agrees on the lease. */
export async function openSession(
  target: SessionTarget,
  options: SessionOptions,
  { runtime: running, tunables, random, limited, request }: OpenSessionParts,
): Promise<Session> {
  const runtime = running()
  const { contract, where, agent: named } = checkTarget(target)
  checkSession(options, tunables.sessionIdleMs)
  const { idleMs, leaseMs, timeoutMs, signal } = options
  const times = { ...(timeoutMs === undefined ? {} : { timeoutMs }), ...(signal === undefined ? {} : { signal }) }
  const best = async (query: Query, stop: AbortSignal): Promise<string> => {
    const [first] = await runtime.router.choose({ ...query, path: served.getStore()?.path ?? [] }, { signal: stop })
    return (first as Candidate).agentId
  }
  let session = undefined as Session | undefined
  try {
    return await limited(times, async (stop) => {
      const agent = named ?? (await best({ capability: contract?.name as string, ...(where ? { where } : {}) }, stop))
      if (leaseMs !== undefined) await runtime.directory.reach(agent, stop)
      stop.throwIfAborted()
      const id = newSessionId((length) => random.bytes(length))
      session = createSession({
        mark: runtime.sessions.table.open(agent, id, { idleMs }),
        runtime: runtime.sessions,
        outputOf,
        request: (one, input, more) => request(one, input, more, id),
      })
      if (leaseMs !== undefined) await session.renew(leaseMs, timeoutMs === undefined ? {} : { timeoutMs })
      return session
    })
  } catch (error) {
    await session?.close()
    throw error
  }
}
