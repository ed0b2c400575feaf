import { decodePayload, fromWireError, HermesError, readAckPayload } from '@hermes-peer/protocol'
import type { ForwardOptions, ForwardTarget } from '../api.ts'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Incoming } from '../delivery/inbox.ts'
import type { Directory } from '../directory/directory.ts'
import type { Link } from '../link/link.ts'
import type { Links } from '../link/links.ts'
import type { CallGuard } from '../policy/guard.ts'
import type { Random } from '../random.ts'
import type { Need, Ranking } from '../routing/router.ts'
import { onAbort } from '../signals.ts'
import { type HopSender, sizeOf } from './hop-sender.ts'
import type { Keys } from './keys.ts'
import { haveProofs } from './proofs.ts'
import { chooseNext } from './target.ts'
import type { Heard, Ways } from './ways.ts'

/** A task as it was submitted, whoever keeps it. */
export type SubmittedTask = Pick<Incoming, 'header' | 'frame' | 'leaf' | 'from' | 'via'>

export interface TaskPiece {
  readonly message: SubmittedTask
  /** Monotonic ms. */
  readonly deadline: number
  /** Fires when it is no longer this agent's to hand on. */
  readonly signal: AbortSignal
  /** Stores who is about to get it, or that nobody has it: nothing is sent before this resolves. */
  note(agentId: string | undefined): Promise<void>
}

/** Hands tasks on: whoever gets one has stored it before the agent that had it lets go of it. */
export interface TaskHandOn {
  /**
   * Chooses an agent, and sends it the task until it says that it has stored it. Resolves with that agent. Rejects with the refusal
   * of the last one, or with `TIMEOUT` when the time is over and nobody has said so.
   */
  handOn(piece: TaskPiece, target: ForwardTarget, options: ForwardOptions): Promise<string>
  /** Goes on with what an earlier life was about to hand to that agent. */
  resume(piece: TaskPiece, agentId: string): Promise<string>
}

export interface TaskHandOnOptions {
  readonly agentId: string
  readonly keys: Keys
  readonly ways: Ways
  readonly hops: HopSender
  readonly links: Links
  readonly directory: Pick<Directory, 'reach'>
  readonly clock: Clock
  readonly random: Random
  readonly tunables: Tunables
  readonly policy: CallGuard
  readonly rank: (need: Need, options: { signal: AbortSignal }) => Promise<Ranking>
}

export function createTaskHandOn(options: TaskHandOnOptions): TaskHandOn {
  const { agentId: self, keys, ways, hops, links, directory, clock, random, tunables, policy, rank } = options

  /** Resolves after the time, or once woken or aborted. */
  const wait = (ms: number, signal: AbortSignal, wake: (end: () => void) => void): Promise<void> =>
    new Promise((resolve) => {
      let release = (): void => undefined
      const end = (): void => {
        clock.clear(timer)
        release()
        resolve()
      }
      const timer = clock.after(ms, end)
      wake(end)
      release = onAbort(signal, end)
    })

  const reach = async (agentId: string, message: SubmittedTask, signal: AbortSignal): Promise<Link> => {
    const link = links.get(agentId) ?? (await directory.reach(agentId, signal))
    const size = sizeOf(message.frame)
    const limit = link.remote.limits.max_envelope_bytes
    if (size > limit) {
      throw new HermesError('PAYLOAD_TOO_LARGE', {
        message: `the task has ${size} bytes, ${agentId} takes ${limit}`,
        details: { size, limit },
      })
    }
    return link
  }

  /** Sends it until there is an answer, and gives the refusal. Undefined: stored over there. `resumed`: it may be there already. */
  const deliver = async (
    { message, deadline }: TaskPiece,
    { agentId, signal, resumed }: { agentId: string; signal: AbortSignal; resumed: boolean },
  ): Promise<HermesError | undefined> => {
    let heard: Heard | undefined
    let wake = (): void => undefined
    const taken = (what: Heard): void => {
      heard = what
      wake()
    }
    const pause = (ms: number): Promise<void> =>
      wait(ms, signal, (end) => {
        wake = end
      })
    const backOff = (failures: number): Promise<void> =>
      pause(random.next() * Math.min(tunables.reconnectCapMs, tunables.reconnectMs * 2 ** Math.min(failures, 16)))
    let resendMs: number = tunables.resendMs
    let sent = false
    try {
      for (let failures = 0; ; failures++) {
        stillOurs(signal)
        heard = undefined
        let proven = false
        try {
          const link = await reach(agentId, message, signal)
          proven = await haveProofs(keys, message, links.get(message.via.at(-1) ?? message.from), signal)
          if (link.state !== 'open' || link.blocked) throw new HermesError('BUSY')
          hops.send(message, link, { budgetMs: deadline - clock.monotonic(), taken })
          sent = true
        } catch (error) {
          stillOurs(signal)
          const failure = HermesError.from(error, 'PEER_UNREACHABLE')
          if (!failure.retryable) return failure
          await backOff(failures)
          continue
        }
        if (!heard) await pause(resendMs)
        stillOurs(signal)
        const answer = answerOf(heard, agentId)
        if (answer === 'stored') return undefined
        if (answer === 'silent') {
          resendMs = Math.min(2 * resendMs, tunables.resendCapMs)
          continue
        }
        if (answer !== 'lost') {
          // It could not find out whose task it is: whoever can prove that is not here now.
          if (answer.code !== 'NOT_ALLOWED' || proven) return answer
        }
        await backOff(failures)
      }
    } catch (error) {
      // Nobody has it who has never been sent it: another agent may get it.
      if (resumed || sent || HermesError.from(error).code !== 'TIMEOUT') throw error
      return new HermesError('PEER_UNREACHABLE', {
        message: `${agentId} could not be reached in the time there was to hand it on`,
        details: { agent: agentId },
      })
    } finally {
      const way = ways.get(message.leaf)
      if (way?.taken === taken) ways.end(way)
    }
  }

  /** The piece with its deadline as a signal beside its own. */
  const limited = async <T>(piece: TaskPiece, work: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    const both = new AbortController()
    const release = onAbort(piece.signal, () => both.abort(piece.signal.reason))
    const timer = clock.after(Math.max(0, piece.deadline - clock.monotonic()), () =>
      both.abort(
        new HermesError('TIMEOUT', { message: 'nobody has said in time that it has stored the task handed on to it' }),
      ),
    )
    try {
      return await work(both.signal)
    } finally {
      clock.clear(timer)
      release()
    }
  }

  return {
    handOn: (piece, target, how) =>
      limited(piece, async (signal) => {
        const { message } = piece
        ways.room()
        const candidates = await chooseNext({
          incoming: message,
          self,
          target,
          options: how,
          rank: (need) => rank(need, { signal }),
          policy,
          patient: true,
        })
        let last: HermesError | undefined
        for (const agentId of candidates) {
          try {
            // Of several the first one that is there is chosen; one that is named is waited for.
            if (typeof target !== 'string') await reach(agentId, message, signal)
          } catch (error) {
            stillOurs(signal)
            last = HermesError.from(error, 'PEER_UNREACHABLE')
            continue
          }
          await piece.note(agentId)
          last = await deliver(piece, { agentId, signal, resumed: false })
          if (!last) return agentId
          await piece.note(undefined)
          if (!last.retryable && last.code !== 'CAPABILITY_NOT_FOUND' && last.code !== 'POLICY_DENIED') break
        }
        throw last ?? new HermesError('PEER_UNREACHABLE')
      }),
    resume: (piece, agentId) =>
      limited(piece, async (signal) => {
        const refusal = await deliver(piece, { agentId, signal, resumed: true })
        if (!refusal) return agentId
        await piece.note(undefined)
        throw refusal
      }),
  }
}

function stillOurs(signal: AbortSignal): void {
  if (signal.aborted) throw HermesError.from(signal.reason, 'CANCELLED')
}

/** What that agent said of the task: the word of anybody else counts for nothing. */
function answerOf(heard: Heard | undefined, agentId: string): 'stored' | 'silent' | 'lost' | HermesError {
  if (!heard) return 'silent'
  if (heard.is === 'lost') return 'lost'
  const { header, frame } = heard.arrived
  if (header.sender.agent_id !== agentId) return 'silent'
  try {
    const payload = decodePayload(header.content_type, frame.payload)
    if (header.message_type === 'error') return fromWireError(payload)
    if (header.message_type !== 'ack') return 'silent'
    readAckPayload(payload)
    return 'stored'
  } catch {
    // What cannot be read answers nothing: it is asked for again.
    return 'silent'
  }
}
