import type { AnyEvent } from 'hermes-peer'
import type { HandlerRun, MadeCall } from './workload.ts'

/** An event of one peer, in one of its lives. */
export interface Observed {
  readonly at: number
  readonly agentId: string
  readonly life: number
  readonly event: AnyEvent
}

/** What one run left behind. */
export interface RunLog {
  readonly observed: readonly Observed[]
  readonly calls: readonly MadeCall[]
  readonly runs: readonly HandlerRun[]
  /** Balances at the end of each life: calls, succeeded, failed, in flight. */
  readonly balances: readonly { agentId: string; calls: number; succeeded: number; failed: number; inFlight: number }[]
  /** Which agents asked for each piece of work, by its id. */
  readonly asked: ReadonlyMap<string, ReadonlySet<string>>
  /** The life that each running agent was in at the end. */
  readonly alive: ReadonlyMap<string, number>
  /** Ids of forged or foreign envelopes: nothing of them may ever be accepted. */
  readonly forged: ReadonlySet<string>
  readonly endedAt: number
}

/** Finds what breaks one promise; empty when it was kept. */
export type Checker = (log: RunLog) => string[]

const GRACE_MS = 250
/** A gap is given up after 5 s; the rest is for the timers of the run itself. */
const LONGEST_HOLD_MS = 5_000 + 50

/** Envelopes of one sender's life are admitted by one recipient's life in rising sequence; only unordered ones may overtake. */
export const admissionOrder: Checker = ({ observed }) => {
  const last = new Map<string, number>()
  const broken: string[] = []
  for (const { agentId, life, event } of observed) {
    if (event.type !== 'envelope.admitted' || !event.ordered) continue
    const key = `${event.from}/${event.epoch} → ${agentId}/${life}`
    const before = last.get(key) ?? 0
    if (event.sequence <= before) broken.push(`${key}: sequence ${event.sequence} was admitted after ${before}`)
    last.set(key, event.sequence)
  }
  return broken
}

/** A handler is started at most once per (sender, message id) in one life of one peer. */
export const startedOnce: Checker = ({ observed }) => {
  const starts = new Map<string, number>()
  for (const { agentId, life, event } of observed) {
    if (event.type !== 'handler.started') continue
    const key = `${event.from} ${event.messageId} at ${agentId}/${life}`
    starts.set(key, (starts.get(key) ?? 0) + 1)
  }
  return [...starts].filter(([, count]) => count > 1).map(([key, count]) => `${key} was started ${count} times`)
}

const ONCE: ReadonlySet<string> = new Set(['work_once', 'task_once', 'call_once'])

/** Work with effects `once` is started at most once in all, wherever, however often anything restarts. */
export const onceOverall: Checker = ({ observed }) => {
  const starts = new Map<string, number>()
  for (const { event } of observed) {
    if (event.type !== 'handler.started' || !ONCE.has(event.capability)) continue
    const key = `${event.from} ${event.messageId}`
    starts.set(key, (starts.get(key) ?? 0) + 1)
  }
  return [...starts].filter(([, count]) => count > 1).map(([key, count]) => `${key} (once) was started ${count} times`)
}

/** What was sent once is admitted once, whoever repeats it and whatever life its reader is in by then. */
export const nothingReplayed: Checker = ({ observed }) => {
  const admitted = new Set<string>()
  const broken: string[] = []
  for (const { agentId, life, event } of observed) {
    if (event.type !== 'envelope.admitted') continue
    const key = `${event.from}/${event.epoch} #${event.sequence} → ${agentId}`
    if (admitted.has(key)) broken.push(`${key}/${life}: it was admitted before`)
    admitted.add(key)
  }
  return broken
}

/** Every call ends by its deadline + 250 ms, with a result or an error of the table. */
export const endsInTime: Checker = ({ calls, endedAt }) => {
  const broken: string[] = []
  for (const call of calls) {
    if (call.orphaned) continue
    const latest = call.at + call.timeoutMs + GRACE_MS
    if (call.endedAt === undefined) {
      if (endedAt > latest)
        broken.push(`${call.id} has not ended at ${endedAt}, its deadline was ${call.at + call.timeoutMs}`)
    } else if (call.endedAt > latest) {
      broken.push(
        `${call.id} ended ${Math.round(call.endedAt - call.at - call.timeoutMs)} ms after its deadline with ${call.code}`,
      )
    }
    if (call.code === 'INTERNAL' || call.code === 'WRONG_ANSWER') broken.push(`${call.id} ended with ${call.code}`)
  }
  return broken
}

/** Handlers run only for what the workload really sent, in the name of who sent it; forged envelopes never get in. */
export const nothingForged: Checker = ({ asked, runs, forged, observed }) => {
  const broken: string[] = []
  for (const run of runs) {
    if (!asked.get(run.id)?.has(run.caller))
      broken.push(`${run.agentId} ran ${run.id} for ${run.caller}, who never asked for it`)
    if (forged.has(run.id)) broken.push(`${run.agentId} ran the forged ${run.id}`)
  }
  for (const { agentId, event } of observed) {
    if (event.type === 'handler.started' && forged.has(event.messageId))
      broken.push(`${agentId} started the forged ${event.messageId}`)
  }
  return broken
}

/** A result comes from a handler that really ran that work. */
export const resultsAreReal: Checker = ({ calls, runs }) => {
  const ran = new Set(runs.map(({ id, agentId }) => `${id} ${agentId}`))
  return calls
    .filter(({ code, id, by }) => code === 'OK' && !ran.has(`${id} ${by}`))
    .map(({ id, by }) => `${id} has a result of ${by}, which never ran it`)
}

/** calls = succeeded + failed + in flight, at every peer. */
export const balanceHolds: Checker = ({ balances }) =>
  balances
    .filter(({ calls, succeeded, failed, inFlight }) => calls !== succeeded + failed + inFlight || inFlight < 0)
    .map((balance) => `the balance of ${balance.agentId} does not hold: ${JSON.stringify(balance)}`)

/** What came early is admitted, refused or dropped with its window before long: no gap is waited for for ever. */
export const gapsAreGivenUp: Checker = ({ observed, endedAt }) => {
  const held = new Map<string, number>()
  const broken: string[] = []
  const settle = (key: string, at: number) => {
    const since = held.get(key)
    held.delete(key)
    if (since !== undefined && at - since > LONGEST_HOLD_MS)
      broken.push(`${key} was held for ${Math.round(at - since)} ms`)
  }
  const lives = new Map<string, number>()
  for (const { agentId, life, event, at } of observed) {
    if (life > (lives.get(agentId) ?? 0)) {
      lives.set(agentId, life)
      // What a dead process held is gone with it.
      for (const key of [...held.keys()]) if (key.startsWith(`${agentId}/`)) held.delete(key)
    }
    if (event.type === 'envelope.received' && event.sequence > 0) {
      const key = `${agentId}/${event.from} ${event.messageId} ${event.leaf}`
      if (!held.has(key)) held.set(key, at)
    }
    if (
      event.type === 'envelope.admitted' ||
      event.type === 'envelope.refused' ||
      event.type === 'dedup.joined' ||
      event.type === 'dedup.stored'
    ) {
      for (const key of [...held.keys()]) {
        if (key.startsWith(`${agentId}/${event.from} ${event.messageId} `)) settle(key, at)
      }
    }
    // A new life of the sender drops what its former one had waiting.
    if (event.type === 'link.up')
      for (const key of [...held.keys()]) if (key.startsWith(`${agentId}/${event.agentId} `)) settle(key, at)
  }
  for (const [key, since] of held) {
    if (endedAt - since > LONGEST_HOLD_MS) broken.push(`${key} is held since ${Math.round(endedAt - since)} ms`)
  }
  return broken
}

export const CHECKERS: Readonly<Record<string, Checker>> = {
  admissionOrder,
  nothingReplayed,
  startedOnce,
  onceOverall,
  endsInTime,
  nothingForged,
  resultsAreReal,
  balanceHolds,
  gapsAreGivenUp,
}
