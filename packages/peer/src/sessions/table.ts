import { HermesError, MAX_LIFE_MS } from '@hermes-peer/protocol'
import { LRUCache } from 'lru-cache'
import type { Clock, Timer } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Telemetry } from '../telemetry/events.ts'

/** One session with one other agent: a mark, not a connection. It keeps who and since when, never what it is about. */
export interface SessionMark {
  readonly id: string
  /** The other agent. */
  readonly agent: string
  readonly openedBy: 'us' | 'them'
  /** Wall clock, ms. */
  readonly since: number
  /** Wall clock of the last piece of work that began or ended, ms. */
  readonly lastAt: number
  /** Aborted with `SESSION_CLOSED` or `LEASE_EXPIRED` when it is over. */
  readonly signal: AbortSignal
}

/**
 * The sessions of a peer by (other agent, id). A mark lasts over lost links; it ends when it is closed, when its lease runs
 * out, or when nothing of it was in flight for the idle time. A lease suspends the idle time: it is the longer promise.
 */
export interface Sessions {
  /** A session of our own. Throws `BUSY` at the bound, naming it. */
  open(agent: string, id: string, options?: { idleMs?: number | undefined }): SessionMark
  /**
   * The mark that an envelope of that agent names, made by the first one. Throws `SESSION_CLOSED` or `LEASE_EXPIRED` when
   * it is over, `BUSY` at the bound.
   */
  admit(agent: string, id: string, epoch: number): SessionMark
  find(agent: string, id: string): SessionMark | undefined
  /** Something of it is in flight, so that it is not idle, until the returned function is called. `over` tells of its end. */
  begin(mark: SessionMark, over?: (reason: HermesError) => void): () => void
  /** Ends it so long from now, unless it is renewed. Throws `SESSION_CLOSED`, `LEASE_EXPIRED`, `INVALID_PAYLOAD`. */
  lease(agent: string, id: string, leaseMs: number): void
  /** Ends it; nothing happens when it is over or was never there, but that its id cannot be used any more. */
  close(agent: string, id: string, reason: HermesError): void
  /** That agent is linked in this life: what its earlier ones opened is over, as nobody knows of it there. */
  linked(agent: string, epoch: number): void
  list(): readonly SessionMark[]
  stop(reason: HermesError): void
}

export interface SessionsOptions {
  readonly clock: Clock
  readonly tunables: Tunables
  readonly telemetry: Telemetry
  /** It is over, on this side. */
  readonly ended?: (mark: SessionMark, reason: HermesError) => void
}

/** Ids of ended sessions that are remembered, so that none comes back to life; the longest ended go first. */
const MOST_ENDED = 10_000

interface Mark extends SessionMark {
  lastAt: number
  readonly epoch: number
  readonly idleMs: number
  readonly running: Set<(reason: HermesError) => void>
  readonly controller: AbortController
  leased: boolean
  timer: Timer | undefined
}

export function createSessions(options: SessionsOptions): Sessions {
  return new SessionTable(options)
}

class SessionTable implements Sessions {
  readonly #options: SessionsOptions
  readonly #byAgent = new Map<string, Map<string, Mark>>()
  readonly #ended = new LRUCache<string, HermesError>({ maxSize: MOST_ENDED, sizeCalculation: () => 1 })
  #size = 0

  constructor(options: SessionsOptions) {
    this.#options = options
  }

  open(agent: string, id: string, { idleMs }: { idleMs?: number | undefined } = {}): SessionMark {
    return this.#make(agent, id, { openedBy: 'us', epoch: 0, idleMs })
  }

  admit(agent: string, id: string, epoch: number): SessionMark {
    const known = this.#byAgent.get(agent)?.get(id)
    if (known) return known
    const over = this.#ended.get(nameOf(agent, id))
    if (over) throw over
    return this.#make(agent, id, { openedBy: 'them', epoch, idleMs: undefined })
  }

  find(agent: string, id: string): SessionMark | undefined {
    return this.#byAgent.get(agent)?.get(id)
  }

  begin(given: SessionMark, over: (reason: HermesError) => void = () => undefined): () => void {
    const mark = given as Mark
    if (mark.signal.aborted) {
      over(HermesError.from(mark.signal.reason))
      return () => undefined
    }
    // A function of its own, as one caller may pass the same twice.
    const tell = (reason: HermesError): void => over(reason)
    mark.running.add(tell)
    this.#touch(mark)
    return () => {
      if (!mark.running.delete(tell) || mark.signal.aborted) return
      this.#touch(mark)
    }
  }

  lease(agent: string, id: string, leaseMs: number): void {
    if (!(Number.isSafeInteger(leaseMs) && leaseMs > 0 && leaseMs <= MAX_LIFE_MS)) {
      throw new HermesError('INVALID_PAYLOAD', {
        message: 'lease_ms must be a whole number of milliseconds, up to 24 hours',
        details: { path: '/lease_ms' },
      })
    }
    const mark = this.#byAgent.get(agent)?.get(id)
    if (!mark) throw this.#ended.get(nameOf(agent, id)) ?? new HermesError('SESSION_CLOSED')
    const { clock } = this.#options
    mark.leased = true
    clock.clear(mark.timer)
    mark.timer = clock.after(leaseMs, () =>
      this.#end(mark, new HermesError('LEASE_EXPIRED', { message: `the lease of ${id} was not renewed in time` })),
    )
  }

  close(agent: string, id: string, reason: HermesError): void {
    const mark = this.#byAgent.get(agent)?.get(id)
    if (mark) this.#end(mark, reason)
    else if (!this.#ended.has(nameOf(agent, id))) this.#ended.set(nameOf(agent, id), reason)
  }

  linked(agent: string, epoch: number): void {
    for (const mark of [...(this.#byAgent.get(agent)?.values() ?? [])]) {
      if (mark.openedBy === 'them' && mark.epoch < epoch)
        this.#end(mark, new HermesError('SESSION_CLOSED', { message: `${agent} has restarted` }))
    }
  }

  list(): readonly SessionMark[] {
    return [...this.#byAgent.values()].flatMap((marks) => [...marks.values()])
  }

  stop(reason: HermesError): void {
    for (const mark of this.list()) this.#end(mark as Mark, reason)
  }

  #make(
    agent: string,
    id: string,
    { openedBy, epoch, idleMs }: { openedBy: 'us' | 'them'; epoch: number; idleMs: number | undefined },
  ): Mark {
    const { clock, tunables, telemetry } = this.#options
    const own = this.#byAgent.get(agent) ?? new Map<string, Mark>()
    if (own.size >= tunables.sessionsPerPeer || this.#size >= tunables.sessionsPerNode) {
      throw new HermesError('BUSY', {
        message:
          own.size >= tunables.sessionsPerPeer
            ? `${own.size} sessions with ${agent} are open, the bound is ${tunables.sessionsPerPeer}`
            : `${this.#size} sessions are open, the bound is ${tunables.sessionsPerNode}`,
        hint: 'Close sessions that are over; idle ones end by themselves.',
        details: { limit: own.size >= tunables.sessionsPerPeer ? tunables.sessionsPerPeer : tunables.sessionsPerNode },
        retryAfterMs: 1000,
      })
    }
    const controller = new AbortController()
    const now = clock.now()
    const mark: Mark = {
      id,
      agent,
      openedBy,
      epoch,
      since: now,
      lastAt: now,
      idleMs: idleMs ?? tunables.sessionIdleMs,
      running: new Set(),
      controller,
      signal: controller.signal,
      leased: false,
      timer: undefined,
    }
    own.set(id, mark)
    this.#byAgent.set(agent, own)
    this.#size++
    this.#touch(mark)
    telemetry.emit('session.opened', { agentId: agent, sessionId: id, by: openedBy })
    return mark
  }

  /** The idle time begins anew, or is suspended while something is in flight. */
  #touch(mark: Mark): void {
    const { clock } = this.#options
    mark.lastAt = clock.now()
    if (mark.leased) return
    clock.clear(mark.timer)
    mark.timer = undefined
    if (mark.running.size > 0) return
    mark.timer = clock.after(mark.idleMs, () =>
      this.#end(mark, new HermesError('SESSION_CLOSED', { message: `${mark.id} was idle for ${mark.idleMs} ms` })),
    )
  }

  #end(mark: Mark, reason: HermesError): void {
    const { clock, telemetry, ended } = this.#options
    if (mark.signal.aborted) return
    clock.clear(mark.timer)
    const own = this.#byAgent.get(mark.agent)
    own?.delete(mark.id)
    if (own?.size === 0) this.#byAgent.delete(mark.agent)
    this.#size--
    this.#ended.set(nameOf(mark.agent, mark.id), reason)
    telemetry.emit('session.closed', { agentId: mark.agent, sessionId: mark.id, code: reason.code })
    mark.controller.abort(reason)
    const running = [...mark.running]
    mark.running.clear()
    for (const over of running) over(reason)
    ended?.(mark, reason)
  }
}

/** Neither holds a blank. */
function nameOf(agent: string, id: string): string {
  return `${agent} ${id}`
}
