import { type SeededRandom, seededRandom, type TestNetwork } from '@hermes-peer/testkit'
import { createPlanner, type Step } from '../plan.ts'
import { createStage, type KeyRing } from '../stage.ts'
import { count, sum, tally } from '../tally.ts'
import type { MadeCall } from '../workload.ts'
import { TUNING } from './bounds.ts'
import { type CallKind, type LeasedCall, type MadeStream, makeCalls, provideCalls } from './calls.ts'
import { DRAIN_MS, DURABLE_CHECKERS, type DurableLog, ENDS } from './checkers.ts'
import { follow, type MadeTask, provideTasks, submitTask, TASKS } from './workload.ts'

/** How often something happened that a run of long work is meant to exercise. */
export type DurableExercise =
  | 'completed'
  | 'failed'
  | 'cancelled'
  | 'interrupted'
  | 'run again'
  | 'resumed watch'
  | 'resent'
  | 'submit joined'
  | 'acknowledged'
  | 'answer back over hops'
  | 'streams whole'
  | 'streams broken'
  | 'CALL_CYCLE'
  | 'QUEUE_FULL'
  | 'LEASE_EXPIRED'
  | 'torn write'
  | 'replayed'
  | 'forged'

export interface DurableResult {
  readonly seed: number
  readonly hash: string
  readonly peers: number
  readonly broken: readonly string[]
  readonly tasks: number
  readonly ends: Readonly<Record<string, number>>
  readonly calls: Readonly<Record<string, number>>
  readonly exercised: Readonly<Record<DurableExercise, number>>
}

/** Virtual ms in which work is given and faults happen: mostly the shorter, so that many seeds are run in little time. */
const WORK_MS = { usual: 18_000, long: 65_000 }
const LONG_SHARE = 0.05
/** A second end, or a second start, would show within this time after all is over. */
const LINGER_MS = 6_000

/** How often each kind of work is asked for in a run; a part of one is a chance. */
const USUAL: Readonly<Record<'submit' | CallKind, number>> = {
  submit: 9,
  call: 2,
  stream: 0.5,
  handOn: 1,
  ring: 1.3,
  lease: 0.6,
  burst: 0.25,
}

export interface DurableOptions {
  readonly seed: number
  readonly keys?: KeyRing
  /** Other numbers than the usual ones. */
  readonly work?: Partial<typeof USUAL>
}

/** One simulated run: peers that give one another work, long and short, while links, networks and processes break; all drawn from the seed. */
export async function runDurable({ seed, keys, work: asked = {} }: DurableOptions): Promise<DurableResult> {
  const random = seededRandom(`durable:${seed}`).fork('durable')
  const agents = Array.from({ length: peersOf(random) }, (_, i) => `agent-${String(i).padStart(2, '0')}`)
  const addressOf = (agentId: string): string => `/ip4/127.0.0.1/tcp/${30_000 + agents.indexOf(agentId)}`
  const work = {
    agents,
    tasks: [] as MadeTask[],
    calls: [] as MadeCall[],
    streams: [] as MadeStream[],
    leased: [] as LeasedCall[],
  }
  const stage = createStage({
    seed: `durable:${seed}`,
    random,
    agents,
    envelopes: { drop: 0.2, duplicate: 0.1, reorder: 0.3 },
    provide(peer, context) {
      provideTasks(peer, context)
      provideCalls(peer, { ...context, ...work })
    },
    // As services have it: each comes back where it was, and some of them are known to all.
    options: (agentId, net) => ({
      listen: [addressOf(agentId)],
      bootstrap: agents
        .slice(0, 3)
        .filter((other) => other !== agentId)
        .map((other) => `${addressOf(other)}/p2p/${net.peerId(other)}`),
      tuning: TUNING,
    }),
    started(peer) {
      for (const task of work.tasks) {
        if (task.from !== peer.agentId || task.taskId === undefined || task.ends.length > 0) continue
        follow(peer.task(TASKS[task.effects], task.taskId), task, context)
      }
    },
    crashed(agentId) {
      for (const task of work.tasks) if (task.from === agentId && task.taskId === undefined) task.orphaned = true
      for (const call of work.calls) if (call.from === agentId && call.endedAt === undefined) call.orphaned = true
    },
    ...(keys ? { keys } : {}),
  })
  const { net } = stage
  const context = { ...stage.context, ...work }
  const owed = owedEnds(net)
  await stage.open()
  const workMs = random.chance(LONG_SHARE) ? WORK_MS.long : WORK_MS.usual
  await stage.play(createPlan({ random, agents, workMs, often: { ...USUAL, ...asked } }), ({ kind, other }, peer) => {
    if (kind === 'submit') submitTask(peer, context)
    else if (kind === 'submitTo') submitTask(peer, context, other)
    else makeCalls(kind as CallKind, peer, other, context)
  })
  stage.heal()
  const healedAt = net.timeline.now()
  // Until everybody knows, and no longer: what is left of the time would only cost some.
  const untold = ({ orphaned, refused, ends }: MadeTask) => !orphaned && refused === undefined && ends.length === 0
  const unended = ({ orphaned, endedAt }: MadeCall) => !orphaned && endedAt === undefined
  const open = () => owed.size > 0 || work.tasks.some(untold) || work.calls.some(unended)
  await stage.settle(open, { least: LINGER_MS, most: DRAIN_MS + 5_000 })
  const torn = agents.map((agentId) => net.disk(agentId).writes.torn)
  const { hash, replayed, ...end } = await stage.close()
  const log: DurableLog = { ...end, ...work, healedAt }
  const { observed, calls, tasks, streams } = log
  const states = (state: string) => count(observed, ({ event }) => event.type === 'task.state' && event.state === state)
  const seen = (type: (typeof observed)[number]['event']['type']) => count(observed, ({ event }) => event.type === type)
  const ended = (code: string) => count(calls, (call) => call.code === code)
  const acknowledged = new Set<string>()
  const completed = new Set<string>()
  for (const { agentId, event } of observed)
    if (event.type === 'task.acknowledged') acknowledged.add(`${agentId} ${event.taskId}`)
  // Each once, at however many agents it was, and none that its owner had no ack for.
  for (const { event } of observed) {
    if (event.type !== 'task.state' || event.state !== 'completed') continue
    const key = `${event.from} ${event.taskId}`
    if (acknowledged.has(key)) completed.add(key)
  }
  return {
    seed,
    hash,
    peers: agents.length,
    broken: Object.entries(DURABLE_CHECKERS).flatMap(([name, check]) => check(log).map((what) => `${name}: ${what}`)),
    tasks: tasks.length,
    ends: tally(tasks.map((task) => task.ends[0]?.state ?? task.refused ?? (task.orphaned ? 'orphaned' : 'open'))),
    calls: tally(calls.map(({ code, orphaned }) => code ?? (orphaned ? 'orphaned' : 'open'))),
    exercised: {
      completed: completed.size,
      failed: states('failed'),
      cancelled: states('cancelled'),
      interrupted: states('interrupted'),
      'run again': states('accepted'),
      'resumed watch': seen('task.resumed'),
      resent: seen('outbox.resent'),
      'submit joined': seen('task.joined'),
      acknowledged: acknowledged.size,
      'answer back over hops': seen('forward.answered'),
      'streams whole': count(streams, ({ code }) => code === 'OK'),
      'streams broken': ended('STREAM_BROKEN'),
      CALL_CYCLE: ended('CALL_CYCLE'),
      QUEUE_FULL: ended('QUEUE_FULL'),
      LEASE_EXPIRED: ended('LEASE_EXPIRED'),
      'torn write': sum(torn),
      replayed,
      forged: end.forged.size,
    },
  }
}

/** Acknowledged tasks that have not come to an end yet. */
function owedEnds(net: Pick<TestNetwork, 'onEvent'>): ReadonlySet<string> {
  const ended = new Set<string>()
  const owed = new Set<string>()
  net.onEvent((agentId, event) => {
    if (event.type === 'task.acknowledged') {
      const key = `${event.agentId} ${agentId} ${event.taskId}`
      if (!ended.has(key)) owed.add(key)
    } else if (event.type === 'task.state' && ENDS.has(event.state)) {
      const key = `${agentId} ${event.from} ${event.taskId}`
      ended.add(key)
      owed.delete(key)
    }
  })
  return owed
}

/** 5 to 25 peers, mostly few: what breaks with many is seen in few runs, and each of them takes long. */
function peersOf(random: SeededRandom): number {
  if (random.chance(0.02)) return random.int(10, 25)
  return random.chance(0.1) ? random.int(6, 9) : 5
}

type Kind = 'submit' | 'submitTo' | CallKind

function createPlan({
  random,
  agents,
  workMs,
  often: times,
}: {
  random: SeededRandom
  workMs: number
  agents: readonly string[]
  often: typeof USUAL
}): Step<Kind>[] {
  const { add, often, steps } = createPlanner<Kind>({ random, workMs, agents })
  for (const kind of Object.keys(USUAL) as (keyof typeof USUAL)[]) often(times[kind], kind)
  often(2, 'cut')
  often(1, 'stall', () => random.int(500, 6_000))
  // 1 to 60 s, or as long as the work goes on.
  const parted = random.int(0, workMs / 4)
  add('partition', parted)
  add('heal', parted + random.int(1_000, Math.min(60_000, workMs - parted)))
  // Half of the crashes come while work that was just handed out is under way.
  for (let i = 0; i < 3; i++) {
    const at = random.int(1_000, workMs - 6_000)
    const { agent } = add('crash', at)
    add('restart', at + random.int(100, 5_000), { agent })
    add('stream', at - random.int(50, 900), { other: agent })
    // Its draft is on the way to the disk when that is torn.
    if (i === 1) add('submit', at - random.int(1, 4), { agent })
    if (i % 2 === 0) for (let j = 0; j < 3; j++) add('submitTo', at - random.int(100, 900), { other: agent })
  }
  return steps()
}
