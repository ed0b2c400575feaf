import {
  type Capability,
  decodePayload,
  type Header,
  HermesError,
  type JsonValue,
  readRequestPayload,
  taskIdOf,
} from '@hermes-peer/protocol'
import type { Clock } from '../../clock.ts'
import type { Tunables } from '../../defaults.ts'
import type { Incoming } from '../../delivery/inbox.ts'
import type { Admission, ServeGuard } from '../../policy/guard.ts'
import type { Telemetry } from '../../telemetry/events.ts'
import { askedOf } from '../asked.ts'
import type { Provided } from '../job.ts'
import { checkNullish } from '../nullish.ts'
import { errorOutcome } from '../outcomes.ts'
import type { Responder } from '../responder.ts'
import { checkOffered } from '../start-check.ts'
import { envelopeOf } from './hand-on.ts'
import { keyOf } from './stored-task.ts'
import { idsOf, NUMBERS_PER_HOLDER, Task, type TaskOrigin } from './task.ts'
import type { TaskBook } from './task-book.ts'

export interface TaskIntakeOptions {
  readonly agentId: string
  readonly book: TaskBook
  readonly responder: Responder
  readonly clock: Clock
  readonly tunables: Tunables
  readonly telemetry: Telemetry
  readonly policy: Pick<ServeGuard, 'admit'>
  provided(name: string): Provided | undefined
  /** It is stored, and acknowledged. */
  accepted(task: Task): void
}

/** Makes submits into tasks: judges, stores, acknowledges; each once, however often it comes. */
export interface TaskIntake {
  /** A submit that nothing is known of. Throws the refusal. */
  submitted(incoming: Incoming): void
  /** Whether that submit is known; it is answered then. Throws `MESSAGE_CONFLICT`. */
  joined(incoming: Incoming): boolean
  /** Resolves once a submit that is being stored is a task, or is refused. */
  stored(owner: string, taskId: string): Promise<void>
}

/** One attempt of a submit, and the neighbour that its answer goes to. */
interface Attempt {
  readonly leaf: string
  readonly neighbour: string
}

/** A submit that is being stored: its attempts wait for the ack. */
interface Accepting {
  readonly header: Header
  readonly waiting: Attempt[]
  readonly over: Promise<void>
}

/** Attempts of one submit that may wait for their ack. */
const MOST_WAITING = 16

export function createTaskIntake(options: TaskIntakeOptions): TaskIntake {
  const { agentId, book, responder, clock, tunables, telemetry, policy } = options
  /** By owner and task id. What is being stored counts for the same bounds as what is stored. */
  const accepting = new Map<string, Accepting>()

  const acknowledge = (header: Header, { neighbour, leaf }: Attempt, taskId: string): void =>
    responder.acknowledge(neighbour, leaf, header, { status: 'stored', task_id: taskId })

  const tooManyAtOnce = (): HermesError | undefined => {
    const most = tunables.inFlightPerNode
    if (accepting.size < most) return undefined
    return new HermesError('BUSY', { message: `${most} tasks are being stored`, retryAfterMs: 100 })
  }

  const originOf = ({ header, from, via, expiresAt, budgetMs }: Incoming, contract: Capability): TaskOrigin => ({
    taskId: taskIdOf(header.message_id),
    owner: from,
    via,
    messageId: header.message_id,
    capability: contract.name,
    effects: contract.effects,
    correlationId: header.correlation_id,
    traceId: header.trace_id,
    priority: header.priority,
    path: header.path,
    contentType: header.content_type,
    payloadSha256: header.payload_sha256,
    ...(header.delegation === undefined ? {} : { delegation: header.delegation }),
    acceptedAt: clock.now(),
    expiresAt,
    // Whoever hands it on says what is left of the time that it was given itself.
    budgetMs: Math.min(
      contract.constraints.budgetMs ?? tunables.taskBudgetMs,
      via.length > 0 ? budgetMs : Number.POSITIVE_INFINITY,
    ),
  })

  /** Never rejects: whoever waits is told. */
  const accept = async (
    incoming: Incoming,
    contract: Capability,
    {
      waiting,
      checked,
      context,
      admission,
    }: { waiting: readonly Attempt[]; checked: () => unknown; context: unknown; admission: Admission },
  ): Promise<void> => {
    const { header, from, via } = incoming
    try {
      admission.judge(await checked(), context)
      const origin = originOf(incoming, contract)
      const { taskId } = origin
      const submit = { payload: incoming.payload, envelope: envelopeOf(incoming) }
      const last = via.length * NUMBERS_PER_HOLDER
      const task = new Task(origin, submit, { state: 'accepted', last, folded: undefined, endedAt: 0 })
      task.admission = admission
      try {
        await book.accept(task)
      } catch (cause) {
        telemetry.emit('journal.failed', { what: `storing task ${taskId}`, cause })
        // Said as what it means for the other side: another agent may take it.
        throw new HermesError('BUSY', { message: 'the task cannot be stored here now', retryAfterMs: 1000, cause })
      }
      telemetry.emit('task.accepted', { ...idsOf(task), taskId, capability: contract.name, from })
      for (const attempt of waiting) acknowledge(header, attempt, taskId)
      if (!task.ended) options.accepted(task)
    } catch (error) {
      admission.leave()
      const outcome = errorOutcome(HermesError.from(error), header.content_type)
      for (const { neighbour, leaf } of waiting) responder.answer(neighbour, leaf, header, outcome)
    }
  }

  return {
    submitted(incoming) {
      const { header, from, payload, frame } = incoming
      const name = header.target_capability as string
      const provided = checkOffered({ agentId, name, header, provided: options.provided(name), streams: false })
      const full = book.noRoom(from, payload.length + frame.header.length) ?? tooManyAtOnce()
      if (full) {
        // It may know the ends of others: once it says so, these make room.
        responder.askReceipt(incoming.link.remote.agentId)
        throw full
      }
      const admission = policy.admit(askedOf(incoming))
      let [input, context]: [JsonValue, unknown] = [null, undefined]
      try {
        ;({ input, context } = readRequestPayload(decodePayload(header.content_type, payload)))
      } catch (error) {
        admission.leave()
        throw error
      }
      const key = keyOf({ owner: from, taskId: taskIdOf(header.message_id) })
      const waiting = [attemptOf(incoming)]
      const checked = () => checkNullish(provided.contract.schemas.input, input, 'input')
      const over = accept(incoming, provided.contract, { waiting, checked, context, admission }).finally(() =>
        accepting.delete(key),
      )
      accepting.set(key, { header, waiting, over })
    },
    joined(incoming) {
      const { header, from } = incoming
      const taskId = taskIdOf(header.message_id)
      const storing = accepting.get(keyOf({ owner: from, taskId }))
      const task = book.find(from, taskId)
      if (!storing && !task) return false
      const first = storing?.header
      const same = first
        ? first.payload_sha256 === header.payload_sha256 && first.target_capability === header.target_capability
        : task?.origin.payloadSha256 === header.payload_sha256 && task.origin.capability === header.target_capability
      const ids = { messageId: header.message_id, correlationId: header.correlation_id, traceId: header.trace_id }
      if (!same) {
        telemetry.emit('dedup.conflict', { ...ids, from })
        throw new HermesError('MESSAGE_CONFLICT')
      }
      telemetry.emit('task.joined', { ...ids, from, taskId })
      const attempt = attemptOf(incoming)
      if (!storing) acknowledge(header, attempt, taskId)
      else if (storing.waiting.length < MOST_WAITING) storing.waiting.push(attempt)
      return true
    },
    stored: (owner, taskId) => accepting.get(keyOf({ owner, taskId }))?.over ?? Promise.resolve(),
  }
}

const attemptOf = ({ leaf, link }: Incoming): Attempt => ({ leaf, neighbour: link.remote.agentId })
