import type { Observed, RunLog } from '../checkers.ts'
import type { HandlerRun } from '../workload.ts'
import type { MadeTask } from './workload.ts'

/** What one run of long work left behind. */
export interface DurableLog extends Pick<RunLog, 'observed' | 'balances' | 'forged' | 'endedAt'> {
  readonly tasks: readonly MadeTask[]
  readonly runs: readonly HandlerRun[]
  /** Virtual ms at which everything had healed. */
  readonly healedAt: number
}

/** Finds what breaks one promise; empty when it was kept. */
export type DurableChecker = (log: DurableLog) => string[]

export const ENDS: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled', 'interrupted'])
/** After healing everything has come to its end within this time. */
export const DRAIN_MS = 15_000

/** A task that somebody was told is stored reaches its end, whatever crashes. */
export const acknowledgedTasksEnd: DurableChecker = ({ observed }) => {
  const ended = new Set<string>()
  for (const { agentId, event } of observed) {
    if (event.type === 'task.state' && ENDS.has(event.state)) ended.add(`${agentId} ${event.from} ${event.taskId}`)
  }
  const broken: string[] = []
  for (const { agentId, event } of observed) {
    if (event.type === 'task.acknowledged' && !ended.has(`${event.agentId} ${agentId} ${event.taskId}`)) {
      broken.push(`${event.taskId} of ${agentId} was stored by ${event.agentId} and never ended`)
    }
  }
  return broken
}

/** Whoever submitted it hears of its end in time, also in a later life of its own. */
export const ownersAreTold: DurableChecker = ({ tasks, healedAt }) => {
  const broken: string[] = []
  for (const task of tasks) {
    if (task.orphaned || task.refused !== undefined) continue
    const [first] = task.ends
    if (!first) broken.push(`${task.id} (${task.taskId ?? 'not handed over'}): its owner was never told how it ended`)
    else if (first.at > healedAt + DRAIN_MS) {
      broken.push(`${task.id}: its owner was told ${Math.round(first.at - healedAt)} ms after everything had healed`)
    }
  }
  return broken
}

/** There is one end: whoever asks again hears the same. */
export const oneEnd: DurableChecker = ({ tasks }) =>
  tasks
    .filter(({ ends }) => new Set(ends.map(({ state }) => state)).size > 1)
    .map(({ id, ends }) => `${id} has several ends: ${ends.map(({ state }) => state).join(', ')}`)

/** News are told in order, each once, none left out but for what was folded. */
export const newsInOrder: DurableChecker = ({ tasks }) => {
  const broken: string[] = []
  for (const { id, followed } of tasks) {
    for (const numbers of followed) {
      const wrong = numbers.findIndex((n, i) => i > 0 && n <= (numbers[i - 1] as number))
      if (wrong >= 0) broken.push(`${id}: update ${numbers[wrong]} came after ${numbers[wrong - 1]}`)
    }
  }
  return broken
}

/** A handler is started at most once per task in one life of one peer. */
export const startedOncePerLife: DurableChecker = ({ observed }) => twice(observed, true)

/** Work with effects `once` is started at most once in all, wherever, however often anything restarts. */
export const onceOverall: DurableChecker = ({ observed }) => twice(observed, false)

function twice(observed: readonly Observed[], perLife: boolean): string[] {
  const starts = new Map<string, number>()
  for (const { agentId, life, event } of observed) {
    if (event.type !== 'handler.started') continue
    if (!perLife && event.capability !== 'task_once') continue
    const key = `${event.from} ${event.messageId}${perLife ? ` at ${agentId}/${life}` : ' (once)'}`
    starts.set(key, (starts.get(key) ?? 0) + 1)
  }
  return [...starts].filter(([, count]) => count > 1).map(([key, count]) => `${key} was started ${count} times`)
}

/** Handlers run only for what was submitted, in the name of who submitted it. */
export const nothingForged: DurableChecker = ({ tasks, runs, forged, observed }) => {
  const sent = new Map(tasks.map(({ id, from }) => [id, from]))
  const broken: string[] = []
  for (const { id, agentId, caller } of runs) {
    if (sent.get(id) !== caller) broken.push(`${agentId} ran ${id} for ${caller}, who never asked for it`)
  }
  for (const { agentId, event } of observed) {
    if (event.type === 'handler.started' && forged.has(event.messageId))
      broken.push(`${agentId} started the forged ${event.messageId}`)
  }
  return broken
}

/** calls = succeeded + failed + in flight, at every peer. */
export const balanceHolds: DurableChecker = ({ balances }) =>
  balances
    .filter(({ calls, succeeded, failed, inFlight }) => calls !== succeeded + failed + inFlight || inFlight < 0)
    .map((balance) => `the balance of ${balance.agentId} does not hold: ${JSON.stringify(balance)}`)

export const DURABLE_CHECKERS: Readonly<Record<string, DurableChecker>> = {
  acknowledgedTasksEnd,
  ownersAreTold,
  oneEnd,
  newsInOrder,
  startedOncePerLife,
  onceOverall,
  nothingForged,
  balanceHolds,
}
