import { HermesError, type JsonValue, sha256Hex } from '@hermes-peer/protocol'
import type { Timer } from '../../clock.ts'
import type { Provided } from '../job.ts'
import type { Turn } from '../places.ts'
import type { Task } from './task.ts'

/** A question that the handler waits for. */
interface Open {
  resolve(answer: unknown): void
  reject(reason: HermesError): void
}

/** One run of a task in this life, from its place in the line to the end of its handler. */
export class Run implements Turn {
  readonly task: Task
  readonly provided: Provided
  readonly priority: Task['origin']['priority']
  readonly since: number
  readonly sender: string
  /** Monotonic ms. */
  readonly deadline: number
  input: unknown
  context: JsonValue | undefined
  budget: Timer | undefined
  /** It holds a place of its capability. */
  holds = false
  start = (): void => undefined
  readonly #controller = new AbortController()
  readonly #open = new Map<string, Open>()
  /** What each question was answered with, as a digest: the same answer twice is one answer. */
  readonly #answered = new Map<string, string>()
  #aborted: HermesError | undefined

  constructor(task: Task, provided: Provided, at: { since: number; deadline: number }) {
    this.task = task
    this.provided = provided
    this.priority = task.origin.priority
    this.since = at.since
    this.sender = task.origin.owner
    this.deadline = at.deadline
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  get aborted(): HermesError | undefined {
    return this.#aborted
  }

  get openQuestions(): number {
    return this.#open.size
  }

  abort(reason: HermesError): void {
    if (this.#aborted) return
    this.#aborted = reason
    for (const { reject } of this.#open.values()) reject(reason)
    this.#open.clear()
    this.#controller.abort(reason)
  }

  wait(questionId: string): Promise<unknown> {
    return new Promise((resolve, reject) => this.#open.set(questionId, { resolve, reject }))
  }

  /** Whether the question is open; an answer that was given before is no news. Throws `TASK_NOT_WAITING`. */
  judge(questionId: string, answer: JsonValue): 'open' | 'known' {
    if (this.#open.has(questionId)) return 'open'
    const given = this.#answered.get(questionId)
    if (given !== undefined && given === digestOf(answer)) return 'known'
    throw new HermesError('TASK_NOT_WAITING', {
      message: given === undefined ? `no question ${questionId} is open` : `${questionId} has been answered already`,
      details: { question_id: questionId },
    })
  }

  answer(questionId: string, answer: JsonValue, parsed: unknown): void {
    const open = this.#open.get(questionId)
    this.#open.delete(questionId)
    this.#answered.set(questionId, digestOf(answer))
    open?.resolve(parsed)
  }
}

function digestOf(answer: JsonValue): string {
  return sha256Hex(new TextEncoder().encode(JSON.stringify(answer)))
}
