import { type Capability, HermesError, type InputOf, type OutputOf } from '@hermes-peer/protocol'
import type { Answer, CallOptions } from '../api.ts'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Links } from '../link/links.ts'
import { createSessions, type SessionMark, type Sessions } from '../sessions/table.ts'
import type { Telemetry } from '../telemetry/events.ts'
import type { AskRuntime } from './system.ts'
import type { BuiltIn } from './unqueued.ts'

/** Options of a call inside a session: its agent is given. */
export type SessionCallOptions = Omit<CallOptions, 'agent' | 'where'>

/** Several calls with one agent that belong together. It lasts over lost links, and restarts of the other side. */
export interface Session extends AsyncDisposable {
  /** `sess_…` */
  readonly id: string
  readonly agent: string
  /** Resolves when it is over, with `SESSION_CLOSED` (closed or idle), `LEASE_EXPIRED` or `STOPPED`. */
  readonly closed: Promise<HermesError>
  /** As `call` of the peer. Rejects with why the session is over, also when that comes while it runs. */
  call<C extends Capability>(contract: C, input: InputOf<C>, options?: SessionCallOptions): Promise<OutputOf<C>>
  request<C extends Capability>(contract: C, input: InputOf<C>, options?: SessionCallOptions): Promise<Answer<C>>
  /**
   * From now on it ends after `leaseMs` (up to 24 hours), whatever runs, unless this is called again before; the idle time
   * counts no more. Rejects with `LEASE_EXPIRED` when it comes too late.
   */
  renew(leaseMs: number, options?: { timeoutMs?: number }): Promise<void>
  /** Ends it on both sides; running calls of it are cancelled, tasks are not. Idempotent. */
  close(): Promise<void>
}

export interface SessionRuntime {
  readonly table: Sessions
  readonly builtIn: BuiltIn
  tell(agent: string, id: string, input: { close: true } | { lease_ms: number }, timeoutMs?: number): Promise<void>
}

export interface SessionRuntimeOptions {
  readonly clock: Clock
  readonly tunables: Tunables
  readonly telemetry: Telemetry
  readonly links: Pick<Links, 'get'>
  readonly ask: AskRuntime
}

/** The marks of a peer, and what both sides say about them to one another. */
export function createSessionRuntime(options: SessionRuntimeOptions): SessionRuntime {
  const { clock, tunables, telemetry, links, ask } = options
  const tell: SessionRuntime['tell'] = async (agent, id, input, timeoutMs = tunables.sessionTellMs) => {
    const link = links.get(agent)
    if (!link) throw new HermesError('PEER_UNREACHABLE', { message: `no link to ${agent}` })
    await ask(link, 'hermes.session', input, { timeoutMs, sessionId: id })
  }
  const table = createSessions({
    clock,
    tunables,
    telemetry,
    ended(mark, { code }) {
      // A lease runs out on both sides. Else the other side need not keep it until it is idle; without a link it will.
      if (mark.openedBy === 'us' && code !== 'LEASE_EXPIRED')
        void tell(mark.agent, mark.id, { close: true }).catch(() => undefined)
    },
  })
  return {
    table,
    tell,
    builtIn(input, { agentId, sessionId, epoch }) {
      const { close, lease_ms } = (input ?? {}) as { close?: unknown; lease_ms?: unknown }
      if (sessionId === undefined || (close === true) === (lease_ms !== undefined)) {
        throw new HermesError('INVALID_PAYLOAD', {
          message: 'hermes.session: the header must have a session_id, and the input either close: true or lease_ms',
          details: { path: '/input' },
        })
      }
      if (close === true) {
        table.close(agentId, sessionId, new HermesError('SESSION_CLOSED', { message: `${agentId} has closed it` }))
      } else {
        table.admit(agentId, sessionId, epoch)
        table.lease(agentId, sessionId, lease_ms as number)
      }
      return {}
    },
  }
}

export interface SessionParts {
  readonly mark: SessionMark
  readonly runtime: SessionRuntime
  /** A request of the peer that carries this session. */
  request<C extends Capability>(contract: C, input: InputOf<C>, options: CallOptions): Promise<Answer<C>>
  /** What `call` makes of an answer. */
  outputOf<C extends Capability>(contract: C, answer: Answer<C>): OutputOf<C>
}

/** What `peer.session` gives. */
export function createSession({ mark, runtime, request, outputOf }: SessionParts): Session {
  const { id, agent, signal } = mark
  const { table, tell } = runtime
  const closed = new Promise<HermesError>((resolve) =>
    signal.addEventListener('abort', () => resolve(HermesError.from(signal.reason)), { once: true }),
  )
  /** The other side may know before we do. */
  const learn = (error: unknown): never => {
    const told = HermesError.from(error)
    if (told.remote && (told.code === 'SESSION_CLOSED' || told.code === 'LEASE_EXPIRED')) table.close(agent, id, told)
    throw told
  }
  const own: Session['request'] = async (contract, input, options = {}) => {
    if (signal.aborted) throw HermesError.from(signal.reason)
    const stop = new AbortController()
    const { signal: given } = options
    const cancel = () => stop.abort(given?.reason)
    if (given?.aborted) cancel()
    else given?.addEventListener('abort', cancel, { once: true })
    const leave = table.begin(mark, (reason) => stop.abort(reason))
    try {
      return await request(contract, input, { ...options, agent, signal: stop.signal }).catch(learn)
    } finally {
      leave()
      given?.removeEventListener('abort', cancel)
    }
  }
  const close = async (): Promise<void> => {
    table.close(agent, id, new HermesError('SESSION_CLOSED', { message: `${id} was closed here` }))
  }
  return {
    id,
    agent,
    closed,
    request: own,
    call: async (contract, input, options) => outputOf(contract, await own(contract, input, options)),
    async renew(leaseMs, options = {}) {
      if (signal.aborted) throw HermesError.from(signal.reason)
      if (!(Number.isSafeInteger(leaseMs) && leaseMs > 0 && leaseMs <= 86_400_000)) {
        throw new HermesError('INVALID_OPTION', {
          message: 'leaseMs must be a whole number of milliseconds, up to 24 hours',
          details: { field: 'leaseMs' },
        })
      }
      await tell(agent, id, { lease_ms: leaseMs }, options.timeoutMs).catch(learn)
      // Ours ends when the other side's has: it began its lease before we knew.
      if (!signal.aborted) table.lease(agent, id, leaseMs)
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}
