import {
  admissionOrder,
  balanceHolds,
  endsInTime,
  nothingForged,
  nothingReplayed,
  onceOverall,
  type RunLog,
  resultsAreReal,
  startedOnce,
} from '../checkers.ts'
import { queuesWithinBounds } from './bounds.ts'
import { type LeasedCall, type MadeStream, NOBODY } from './calls.ts'
import type { MadeTask } from './workload.ts'

/** What one run of long work left behind. */
export interface DurableLog extends RunLog {
  readonly tasks: readonly MadeTask[]
  readonly streams: readonly MadeStream[]
  readonly leased: readonly LeasedCall[]
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
    if (!first) {
      const why = task.notTold === undefined ? '' : `, but ${task.notTold}`
      broken.push(`${task.id} (${task.taskId ?? 'not handed over'}): its owner was never told how it ended${why}`)
    }
    if (first && first.at > healedAt + DRAIN_MS) {
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

/** A stream that comes to its end is whole, and what was read of one that does not is its beginning. */
export const streamsAreWhole: DurableChecker = ({ streams }) => {
  const broken: string[] = []
  for (const { id, pieces, read, code } of streams) {
    const wrong = read.findIndex((n, index) => n !== index)
    if (wrong >= 0) broken.push(`${id}: piece ${read[wrong]} was read as number ${wrong}`)
    if (code === 'OK' && read.length !== pieces)
      broken.push(`${id} ended well after ${read.length} of ${pieces} pieces`)
  }
  return broken
}

/** Work that waits for itself is refused, however many agents the cycle goes through: it never comes back to where it is. */
export const cyclesAreRefused: DurableChecker = ({ runs }) =>
  runs
    .filter(({ id, agentId }) => id.split('~').slice(1).includes(agentId))
    .map(({ id, agentId }) => `${agentId} ran ${id}, for which it waits itself`)

/** Nothing that belongs to a session ends well once its lease is over. */
export const leasesEnd: DurableChecker = ({ leased, calls }) => {
  const made = new Map(calls.map((call) => [call.id, call]))
  return leased.flatMap(({ id, leaseEndsAt }) => {
    const { code, endedAt = 0 } = made.get(id) ?? {}
    return code === 'OK' && endedAt > leaseEndsAt
      ? [`${id} ended well ${endedAt - leaseEndsAt} ms after its lease`]
      : []
  })
}

/** After healing all work comes to rest: nothing is in flight, and no handler runs. */
export const everythingDrains: DurableChecker = ({ observed, balances, alive }) => {
  const running = new Map<string, string>()
  for (const { agentId, life, event } of observed) {
    if (alive.get(agentId) !== life) continue
    if (event.type === 'handler.started') running.set(`${agentId} ${event.from} ${event.messageId}`, event.capability)
    if (event.type === 'handler.ended') running.delete(`${agentId} ${event.from} ${event.messageId}`)
  }
  // The last balance of an agent is that of its last life.
  const last = new Map(balances.map((balance) => [balance.agentId, balance]))
  return [
    ...[...running].map(([key, capability]) => `${key}: a handler of ${capability} runs on`),
    ...[...last.values()]
      .filter(({ agentId, inFlight }) => alive.has(agentId) && inFlight > 0)
      .map(({ agentId, inFlight }) => `${agentId} has ${inFlight} calls in flight`),
  ]
}

export const DURABLE_CHECKERS: Readonly<Record<string, DurableChecker>> = {
  acknowledgedTasksEnd,
  ownersAreTold,
  oneEnd,
  newsInOrder,
  startedOncePerLife: startedOnce,
  onceOverall,
  nothingForged,
  nothingReplayed,
  balanceHolds,
  admissionOrder,
  endsInTime,
  resultsAreReal: (log) => resultsAreReal({ ...log, calls: log.calls.filter(({ by }) => by !== NOBODY) }),
  queuesWithinBounds,
  streamsAreWhole,
  cyclesAreRefused,
  leasesEnd,
  everythingDrains,
}
