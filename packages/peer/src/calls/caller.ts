import { encodePayload, HermesError, newSpanId, type ResponsePayload } from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Draft, Outbox } from '../delivery/outbox.ts'
import type { Directory } from '../directory/directory.ts'
import type { Link } from '../link/link.ts'
import type { Links } from '../link/links.ts'
import type { Random } from '../random.ts'
import type { Breaker } from '../routing/breaker.ts'
import { breakerError } from '../routing/failures.ts'
import type { Measurements } from '../routing/measure.ts'
import type { Candidate } from '../routing/query.ts'
import type { Router } from '../routing/router.ts'
import { verdictOf, verdictOfLoss } from '../routing/verdict.ts'
import { onAbort } from '../signals.ts'
import type { Ledger } from '../telemetry/balance.ts'
import type { Telemetry } from '../telemetry/events.ts'
import { endingOf } from './answer.ts'
import { type Attempt, type CallSpec, CallState, type Ending, notStarted } from './call.ts'
import { stricter } from './effects.ts'
import type { Large } from './large.ts'
import { createReconciler } from './outcome.ts'
import type { Pending, PendingAttempt } from './pending.ts'
import type { RetryBudget } from './retry-budget.ts'
import { placeAt, type Slots } from './slots.ts'
import type { StreamAttempt } from './stream-caller.ts'
import type { AskRuntime } from './system.ts'

export interface CallerOptions {
  readonly links: Links
  readonly outbox: Outbox
  readonly pending: Pending
  readonly directory: Directory
  readonly router: Router
  readonly measurements: Measurements
  readonly breaker: Breaker
  readonly clock: Clock
  readonly random: Random
  readonly tunables: Tunables
  readonly telemetry: Telemetry
  readonly ledger: Ledger
  readonly budget: RetryBudget
  readonly slots: Slots
  readonly ask: AskRuntime
  /** Carries out the attempts of streaming calls. */
  readonly stream: StreamAttempt
  /** Sends requests that no envelope holds. */
  large(): Large
}

export interface Answered {
  readonly response: ResponsePayload
  readonly agentId: string
  readonly state: CallState
}

/** Carries calls out: chooses, sends, fails over, asks for outcomes, and ends each by its deadline. */
export interface Caller {
  call(spec: CallSpec, signal: AbortSignal | undefined): Promise<Answered>
  /** Ends every call that is in flight; with `nested: false` those that no call being served waits for. */
  stop(reason: HermesError, options?: { nested: boolean }): void
}

export function createCaller(options: CallerOptions): Caller {
  const { links, outbox, pending, directory, router, measurements, clock, random, tunables, telemetry } = options
  const { ledger, budget, slots, breaker } = options
  const reconcile = createReconciler(options)
  const running = new Map<CallState, (error: HermesError) => void>()

  const call = (spec: CallSpec, signal: AbortSignal | undefined): Promise<Answered> =>
    new Promise<Answered>((resolve, reject) => {
      const state = new CallState(spec, clock)
      ledger.begin()
      budget.credit()
      if (telemetry.wants('call.started')) telemetry.emit('call.started', state.ids)
      let ended = false
      let release = (): void => undefined
      const end = (
        result: Answered | undefined,
        error: HermesError | undefined,
        // What may be done once only, and somebody is to find out about, is left to end.
        cancels = error?.code !== 'OUTCOME_UNKNOWN',
      ): void => {
        if (ended) return
        ended = true
        running.delete(state)
        clock.clear(timer)
        release()
        for (const attempt of state.attempts) pending.remove(attempt.pending)
        if (cancels) for (const attempt of inFlight(state)) sendCancel(state, attempt, error ?? ENDED)
        ledger.end(error === undefined)
        if (telemetry.wants('call.ended')) {
          telemetry.emit('call.ended', {
            ...state.ids,
            agentId: result?.agentId ?? state.attempts.at(-1)?.agentId,
            code: error ? (error.declared?.name ?? error.code) : 'OK',
            ms: clock.monotonic() - state.startedAt,
            attempts: state.attempts.length,
          })
        }
        if (result) resolve(result)
        else reject(state.failure(error as HermesError))
        state.end(error ?? ENDED)
      }
      const giveUp = (error: HermesError): void => end(undefined, error, true)
      const aborted = () => giveUp(HermesError.from(signal?.reason, 'CANCELLED'))
      const timer = clock.after(Math.max(0, state.leftMs), () => giveUp(deadlineError(state)))
      state.late = (response, agentId) => end({ response, agentId, state }, undefined)
      running.set(state, giveUp)
      release = signal ? onAbort(signal, aborted) : release
      if (ended) return
      drive(state).then(
        (result) => end(result, undefined),
        (error: unknown) => end(undefined, HermesError.from(error)),
      )
    })

  /** Attempt after attempt until one is final. */
  const drive = async (state: CallState): Promise<Answered> => {
    let kept: readonly Candidate[] = await choose(state, false)
    let looked = false
    for (;;) {
      alive(state)
      const candidate = kept.find(({ agentId }) => !state.asked.has(agentId) && !state.unreachable.has(agentId))
      if (candidate) {
        const ended = await tryCandidate(state, candidate)
        if (ended) return ended
        continue
      }
      if (!looked) {
        looked = true
        // Everyone kept has failed: whoever appeared meanwhile is asked before anybody is asked twice.
        kept = await choose(state, true).catch((error: unknown) => {
          if (state.reports.length === 0 && state.unreachable.size === 0) throw error
          return []
        })
        continue
      }
      const again = await waitToRepeat(state)
      state.asked.delete(again)
      state.unreachable.delete(again)
      kept = await choose(state, false).catch(() => [])
      if (!kept.some(({ agentId }) => agentId === again)) throw lastError(state)
    }
  }

  const choose = async (state: CallState, fresh: boolean): Promise<readonly Candidate[]> => {
    const { capability, agent, where, intent, sla, input, path, correlationId } = state.spec
    return router.choose(
      {
        capability,
        input,
        path,
        correlationId,
        ...(agent === undefined ? {} : { agent }),
        ...(where === undefined ? {} : { where }),
        ...(intent === undefined ? {} : { intent }),
        ...(sla === undefined ? {} : { sla }),
      },
      {
        get signal() {
          return state.signal
        },
        fresh,
        decided: telemetry.wants('call.decided')
          ? (decision) => telemetry.emit('call.decided', { ...state.ids, decision })
          : undefined,
      },
    )
  }

  /** One candidate: a link, a place, an attempt. Returns the answer, or undefined when the call goes on elsewhere. */
  const tryCandidate = async (state: CallState, candidate: Candidate): Promise<Answered | undefined> => {
    const { agentId } = candidate
    const first = await linkTo(state, agentId)
    if (!first) return undefined
    alive(state)
    const effects = stricter(state.spec.effects, router.entry(agentId, state.spec.capability)?.effects)
    state.unsafeToRepeat = effects === 'once'
    const release = await place(state, first)
    // The link may have gone while the call waited for its place.
    const link = links.get(agentId) ?? (state.endedBy ? undefined : await linkTo(state, agentId))
    if (state.endedBy || !link) {
      release()
      alive(state)
      return undefined
    }
    const told = breaker.begin(agentId, state.spec.capability)
    if (!told) {
      // It opened, or another call became its probe, since it was chosen.
      release()
      const closed = breakerError(state.spec.capability, [`${agentId}: breaker open`], tunables.breakerOpenMs)
      state.unreachable.set(agentId, closed)
      state.report(agentId, closed)
      return undefined
    }
    if (telemetry.wants('call.chosen')) {
      telemetry.emit('call.chosen', {
        ...state.ids,
        agentId,
        reasons: candidate.reasons,
        score: candidate.score,
        attempt: state.attempts.length + 1,
      })
    }
    const previous = state.attempts.at(-1)
    if (previous && previous.agentId !== agentId) {
      ledger.failover()
      const code = state.asked.get(previous.agentId)?.code ?? 'PEER_UNREACHABLE'
      telemetry.emit('call.failover', { ...state.ids, from: previous.agentId, to: agentId, code })
    }
    const since = clock.monotonic()
    measurements.begin(agentId, state.spec.capability)
    let ending: Ending
    let attempt: Attempt | undefined
    try {
      const { reader } = state.spec
      ;({ ending, attempt } = await (reader ? options.stream(state, link, reader) : send(state, link)))
    } finally {
      release()
    }
    const endedBy = endOf(state)
    if (endedBy) {
      // The caller has had its answer: what is left is to learn from it. Who cancelled says nothing of the provider.
      if (endedBy.code === 'TIMEOUT' || endedBy.code === 'OUTCOME_UNKNOWN') {
        measurements.end(agentId, state.spec.capability, false, clock.monotonic() - since)
        told({ verdict: 'failed', code: endedBy.code })
      } else {
        measurements.cancel(agentId, state.spec.capability)
        told({ verdict: 'nothing' })
      }
      throw endedBy
    }
    const { kind } = ending
    if (ending.kind === 'lost' && effects === 'once' && attempt) ending = await reconcile(state, attempt, ending.error)
    const well = ending.kind === 'answer' || ending.error.declared !== undefined
    if (ending.kind === 'answer') told({ verdict: 'well' })
    else {
      const { error } = ending
      // All calls that one lost link took with it are one failure, not as many.
      const event = kind === 'lost' ? link.id : undefined
      const verdict = ending.kind === 'lost' ? verdictOfLoss(error) : verdictOf(error)
      told({ verdict, code: error.code, event })
    }
    measurements.end(agentId, state.spec.capability, well, clock.monotonic() - since)
    if (ending.kind === 'answer') {
      router.remember(state.spec.correlationId, agentId, ending.response.status === 'need_confirmation')
      return { response: ending.response, agentId: ending.by ?? agentId, state }
    }
    state.report(ending.by ?? agentId, ending.error)
    state.asked.set(agentId, ending.error)
    if (!goesOn(state, ending, effects)) throw ending.error
    return undefined
  }

  /** A link to that agent; without one nothing was sent, so that this is no attempt. */
  const linkTo = async (state: CallState, agentId: string): Promise<Link | undefined> => {
    try {
      return links.get(agentId) ?? (await directory.reach(agentId, state.signal))
    } catch (error) {
      const failure = HermesError.from(error, 'PEER_UNREACHABLE')
      state.unreachable.set(agentId, failure)
      state.report(agentId, failure)
      return undefined
    }
  }

  /** Whether another attempt is allowed after this ending; takes from the retry budget where it must. */
  const goesOn = (state: CallState, ending: Exclude<Ending, { kind: 'answer' }>, effects: string): boolean => {
    const { error } = ending
    if (state.attempts.length >= tunables.maxAttempts || state.leftMs <= 0 || state.committed) return false
    if (ending.kind === 'lost') return effects !== 'once'
    // What one agent's policy denies another's may allow; nobody is asked again who has denied it.
    if (!error.retryable && error.code !== 'POLICY_DENIED') return false
    if (effects === 'once' && !ending.neverStarts && !notStarted(error)) return false
    return error.code === 'BUSY' || error.code === 'QUOTA_EXCEEDED' ? budget.take() : true
  }

  /** A place at the agent; the caller waits here, inside its deadline, when too much is in flight. */
  const place = (state: CallState, { remote }: Link): Promise<() => void> => {
    const most = Math.min(tunables.inFlightPerPeer, remote.limits.max_in_flight)
    return placeAt(slots, { agentId: remote.agentId, most, priority: state.spec.priority }, state)
  }

  const send = (state: CallState, link: Link): Promise<{ ending: Ending; attempt: Attempt | undefined }> =>
    new Promise((resolve) => {
      const { spec } = state
      const { agentId, epoch } = link.remote
      const number = state.attempts.length + 1
      let attempt: Attempt | undefined
      let over = false
      let settle = (): void => undefined
      const abandon = (error: HermesError): void => finish({ kind: 'refused', error })
      const finish = (ending: Ending): void => {
        // What comes later concerns this attempt no more; the one in flight by then may be another.
        if (over) return
        over = true
        settle()
        if (state.abandon === abandon) state.abandon = undefined
        resolve({ ending, attempt })
      }
      state.abandon = abandon
      const draft: Draft = {
        type: 'request',
        payload: spec.payload,
        messageId: spec.messageId,
        correlationId: spec.correlationId,
        traceId: spec.traceId,
        spanId: newSpanId((length) => random.bytes(length)),
        capability: spec.capability,
        timeoutMs: Math.max(1, Math.ceil(state.leftMs)),
        priority: spec.priority,
        attempt: number,
        path: spec.path,
        sessionId: spec.sessionId,
        delegation: spec.delegation,
        ordered: spec.ordered && number === 1,
        maxHops: spec.maxHops,
      }
      const way = options.large().needed(link, draft) ? options.large() : outbox
      const takeBack = way.post(link, draft, {
        written: ({ leaf }) => {
          spec.reached?.(agentId)
          const waiter: PendingAttempt = {
            leaf,
            agentId,
            epoch,
            answered: (incoming) => {
              const ending = endingOf(incoming)
              if (attempt && ending.kind !== 'lost') state.settle(attempt)
              if (over && ending.kind === 'answer') state.late(ending.response, incoming.from)
              else finish(ending)
            },
            lost: (reason) => finish({ kind: 'lost', error: HermesError.from(reason, 'PEER_UNREACHABLE') }),
            distrusted: (error) => finish({ kind: 'refused', error }),
          }
          attempt = { agentId, recipientEpoch: epoch, number, startedAt: clock.monotonic(), pending: waiter }
          state.attempts.push(attempt)
          pending.add(waiter)
          if (telemetry.wants('call.attempt')) {
            telemetry.emit('call.attempt', { ...state.ids, agentId, attempt: number, leaf })
          }
        },
        // Nothing was written: it was never asked, so that it may be asked elsewhere whatever its effects are.
        failed: (error) => finish({ kind: 'refused', error, neverStarts: true }),
        // What the other side says when it gives a payload up is its answer, whether or not it says so over the link too.
        broken: (error) => finish(error.remote ? { kind: 'refused', error } : { kind: 'lost', error }),
      })
      // Still waiting for room in the link: what is given up before it is written leaves no gap in the order. What travels in
      // chunks is given up at any time.
      if ((!attempt || way !== outbox) && !over) {
        settle = onAbort(state.signal, takeBack)
      }
    })

  /** Backs off, then gives the candidate to ask again; throws the last error when nobody may be. */
  const waitToRepeat = async (state: CallState): Promise<string> => {
    const open = [...state.asked, ...state.unreachable].filter(
      ([agentId, error]) => error.retryable && error.code !== 'BREAKER_OPEN' && !state.withdrawn.has(agentId),
    )
    const [agentId, error] = open.at(-1) ?? []
    if (!agentId || !error || state.attempts.length >= tunables.maxAttempts || !budget.take()) throw lastError(state)
    const rounds = state.reports.length
    const most = Math.min(tunables.retryBackoffCapMs, tunables.retryBackoffMs * 2 ** Math.max(0, rounds - 1))
    const inMs = Math.max(error.retryAfterMs ?? 0, random.next() * most)
    if (inMs >= state.leftMs) throw lastError(state)
    telemetry.emit('call.retry', { ...state.ids, agentId, code: error.code, inMs })
    await pause(inMs, state.signal)
    return agentId
  }

  const pause = (ms: number, signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const done = () => {
        clock.clear(timer)
        signal.removeEventListener('abort', done)
        resolve()
      }
      const timer = clock.after(ms, done)
      signal.addEventListener('abort', done, { once: true })
    })

  const sendCancel = (state: CallState, attempt: Attempt, reason: HermesError): void => {
    const link = links.get(attempt.agentId)
    if (!link) return
    if (telemetry.wants('call.cancelled')) {
      telemetry.emit('call.cancelled', { ...state.ids, agentId: attempt.agentId, reason: reason.code })
    }
    try {
      outbox.write(link, {
        type: 'cancel',
        payload: encodePayload('application/json', {
          message_id: state.spec.messageId,
          expires_at: clock.now() + Math.max(0, Math.ceil(state.leftMs)) + tunables.clockToleranceMs,
        }),
        messageId: state.spec.messageId,
        correlationId: state.spec.correlationId,
        traceId: state.spec.traceId,
        spanId: newSpanId((length) => random.bytes(length)),
        timeoutMs: 60_000,
        priority: 5,
        maxHops: state.spec.maxHops,
      })
    } catch {
      // The link went away meanwhile: the other side sees the disconnect.
    }
  }

  return {
    call,
    stop(reason, { nested } = { nested: true }) {
      for (const [state, giveUp] of [...running]) if (nested || state.spec.path.length === 0) giveUp(reason)
    },
  }
}

const ENDED = new HermesError('CANCELLED', { message: 'the call has ended' })

/** Why the call has ended, if it has by now. */
function endOf(state: CallState): HermesError | undefined {
  return state.endedBy
}

/** Throws when the call has ended while something was awaited: nothing more is sent for it. */
function alive(state: CallState): void {
  if (state.endedBy) throw state.endedBy
}

/** Attempts that nobody has answered. */
function inFlight(state: CallState): Attempt[] {
  return state.attempts.filter((attempt) => !state.isSettled(attempt))
}

function lastError(state: CallState): HermesError {
  const errors = [...state.unreachable.values(), ...state.asked.values()]
  const last = [...state.asked.values()].at(-1) ?? errors.at(-1) ?? state.lastFailure
  return last ?? new HermesError('NO_CANDIDATE')
}

/** At the deadline: a piece of work with effects `once` that was sent and not answered may have been done. */
function deadlineError(state: CallState): HermesError {
  const { spec } = state
  const open = inFlight(state).at(-1)
  const timeout = new HermesError('TIMEOUT', {
    message: open
      ? `${open.agentId} did not answer ${spec.capability} within ${spec.timeoutMs} ms`
      : `nobody took ${spec.capability} within ${spec.timeoutMs} ms`,
    source: 'sender',
  })
  // Whoever reads a stream knows how far it came.
  if (!open || !state.unsafeToRepeat || spec.reader) return timeout
  return new HermesError('OUTCOME_UNKNOWN', {
    message: `${open.agentId} did not answer ${spec.capability} within ${spec.timeoutMs} ms, and repeating it might do it twice`,
    cause: timeout,
  })
}
