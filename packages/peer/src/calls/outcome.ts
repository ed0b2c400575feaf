import { decodePayload, HermesError, ID_PATTERNS, type JsonValue } from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Dedup } from '../delivery/dedup.ts'
import type { Directory } from '../directory/directory.ts'
import type { Telemetry } from '../telemetry/events.ts'
import { endingOf } from './answer.ts'
import { type Attempt, type CallState, type Ending, replyOfOutcome } from './call.ts'
import { rememberedOf } from './outcomes.ts'
import type { PendingAttempt } from './pending.ts'
import type { AskRuntime } from './system.ts'
import type { BuiltIn } from './unqueued.ts'

export interface ReconcilerOptions {
  readonly directory: Directory
  readonly ask: AskRuntime
  readonly clock: Clock
  readonly tunables: Tunables
  readonly telemetry: Telemetry
}

/** Finds out what became of work with effects `once` whose link was lost. */
export type Reconcile = (state: CallState, attempt: Attempt, lost: HermesError) => Promise<Ending>

/** Waits between two tries to reach the agent again, ms. */
const AGAIN_MS = 200

export function createReconciler(options: ReconcilerOptions): Reconcile {
  const { directory, ask, clock, tunables, telemetry } = options

  return async (state, attempt, lost) => {
    // An answer to the lost attempt may still come over another link: it ends the search.
    let late: Ending | undefined
    let wake = (): void => undefined
    Object.assign(attempt.pending, {
      answered: ((incoming) => {
        const ending = endingOf(incoming)
        // That the way is broken is known, and why it is asked. What a new life says of a copy that reached it is no news of the
        // life that had the first one.
        if (ending.kind === 'lost' || (ending.kind === 'refused' && ending.error.code === 'PEER_RESTARTED')) return
        late = ending
        state.settle(attempt)
        wake()
      }) satisfies PendingAttempt['answered'],
      lost: () => undefined,
    })

    const pause = (ms: number): Promise<void> =>
      new Promise((resolve) => {
        const { signal } = state
        const end = () => {
          clock.clear(timer)
          signal.removeEventListener('abort', end)
          resolve()
        }
        const timer = clock.after(ms, end)
        signal.addEventListener('abort', end, { once: true })
        wake = end
        if (late) end()
      })

    const unknown = (cause: HermesError): Ending => ({
      kind: 'refused',
      error: new HermesError('OUTCOME_UNKNOWN', {
        message: `the link to ${attempt.agentId} was lost while it worked on ${state.spec.capability}, and what became of it cannot be found out`,
        cause,
      }),
    })

    let until = Math.min(clock.monotonic() + tunables.outcomeTimeoutMs, state.spec.deadline)
    while (!late && clock.monotonic() < until && !state.signal.aborted) {
      let answer: Record<string, unknown>
      let by = attempt.agentId
      try {
        const link = await directory.reach(attempt.agentId, state.signal)
        if (late) break
        answer = (await ask(
          link,
          'hermes.outcome',
          {
            message_id: state.spec.messageId,
            recipient_epoch: attempt.recipientEpoch,
            expires_at: clock.now() + Math.max(0, Math.ceil(state.leftMs)) + 2 * tunables.clockToleranceMs,
          },
          {
            timeoutMs: Math.max(1, until - clock.monotonic()),
            signal: state.signal,
            traceId: state.spec.traceId,
            answeredBy: (agentId) => {
              by = agentId
            },
          },
        )) as Record<string, unknown>
      } catch {
        await pause(AGAIN_MS)
        continue
      }
      const known = readState(answer?.state)
      telemetry.emit('call.outcome', { ...state.ids, agentId: by, state: known })
      if (late) break
      if (known === 'done') {
        const reply = replyOfOutcome(answer.outcome)
        state.settle(attempt)
        return reply.kind === 'response'
          ? { kind: 'answer', response: reply.response, by }
          : { kind: 'refused', error: reply.error, by }
      }
      if (known === 'unseen') {
        state.settle(attempt)
        state.withdrawn.add(attempt.agentId)
        return { kind: 'refused', error: lost, neverStarts: true }
      }
      if (known === 'unknown') return unknown(lost)
      // It is being worked on: its answer is on the way, or is asked for again.
      until = state.spec.deadline
      await pause(tunables.outcomePollMs)
    }
    return late ?? unknown(lost)
  }
}

function readState(value: unknown): 'running' | 'done' | 'unseen' | 'unknown' {
  return value === 'running' || value === 'done' || value === 'unseen' ? value : 'unknown'
}

/** `hermes.outcome {message_id, recipient_epoch, expires_at}`: what became of a piece of work of the asker. */
export function outcomeBuiltIn(options: {
  dedup: Dedup
  epoch: number
  now: () => number
  mostAheadMs: number
}): BuiltIn {
  const { dedup, epoch, now, mostAheadMs } = options
  return (input, { agentId: from, offsetMs, direct }) => {
    const { message_id, recipient_epoch, expires_at } = (input ?? {}) as Record<string, unknown>
    if (
      typeof message_id !== 'string' ||
      !ID_PATTERNS.message_id.test(message_id) ||
      !Number.isSafeInteger(recipient_epoch) ||
      !Number.isSafeInteger(expires_at)
    ) {
      throw new HermesError('VALIDATION_ERROR', {
        message: 'hermes.outcome: message_id, recipient_epoch and expires_at must be given',
        details: { path: '/' },
      })
    }
    const record = dedup.find(from, message_id)
    const remembered = record && rememberedOf(record)
    if (remembered) {
      const { messageType, contentType, payload } = remembered
      const outcome = { message_type: messageType, payload: decodePayload(contentType, payload) as JsonValue }
      return { state: 'done', outcome }
    }
    // Who has it now was asked, and cannot be reached: this agent does not know, and must not promise anything.
    if (record?.state === 'forwarded') return { state: 'unknown' }
    if (record && record.state !== 'refused') return { state: 'running' }
    // Another life of this agent may have started it, and no journal tells. Over hops the life of another agent is meant.
    if (!direct || recipient_epoch !== epoch) return { state: 'unknown' }
    // The promise comes before the word: from now on that id is refused.
    // Said by the asker's clock.
    const until = Math.min((expires_at as number) - offsetMs, now() + mostAheadMs)
    return dedup.refuse(from, message_id, until) ? { state: 'unseen' } : { state: 'unknown' }
  }
}
