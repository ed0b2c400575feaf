import { createEnvelopeFaults, type SeededRandom, testNetwork } from '@hermes-peer/testkit'
import type { Peer, SendFilter } from 'hermes-peer'
import { createAttack } from '../attack.ts'
import type { Observed } from '../checkers.ts'
import { count, tally } from '../tally.ts'
import type { HandlerRun } from '../workload.ts'
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

export interface DurableResult {
  readonly seed: number
  readonly hash: string
  readonly peers: number
  readonly broken: readonly string[]
  readonly tasks: number
  readonly ends: Readonly<Record<string, number>>
  readonly exercised: Readonly<Record<DurableExercise, number>>
}

/** Virtual ms in which tasks are submitted and faults happen: mostly the shorter, so that many seeds are run in little time. */
const WORK_MS = { usual: 20_000, long: 65_000 }
const LONG_SHARE = 0.12
/** A second end, or a second start, would show within this time after all is over. */
const LINGER_MS = 6_000

/** One simulated run: peers that give one another long work while links, networks and processes break, all drawn from the seed. */
export async function runDurable({ seed }: { seed: number }): Promise<DurableResult> {
  const attack = createAttack()
  const net = testNetwork({
    seed: `durable:${seed}`,
    skewMs: (agentId) => skews.get(agentId) ?? 0,
    sendFilter: (agentId) => filterOf(agentId),
  })
  const random = net.random.fork('durable')
  const agents = Array.from({ length: peersOf(random) }, (_, i) => `agent-${String(i).padStart(2, '0')}`)
  const skews = new Map(agents.map((agentId) => [agentId, random.int(-240_000, 240_000)]))
  const filters = new Map<string, SendFilter>()
  let healed = false
  const filterOf = (agentId: string): SendFilter => {
    let filter = filters.get(agentId)
    if (!filter) {
      const disturb = createEnvelopeFaults({
        random: random.fork(`envelopes:${agentId}`),
        clock: net.timeline.clock(),
        drop: 0.2,
        duplicate: 0.1,
        reorder: 0.3,
      })
      const draw = random.fork(`attack:${agentId}`)
      filter = (to, frame, deliver) => {
        if (healed) return deliver(frame)
        attack.onFrame({ from: agentId, to, frame, deliver, draw })
        disturb(frame, deliver)
      }
      filters.set(agentId, filter)
    }
    return filter
  }

  const addressOf = (agentId: string): string => `/ip4/127.0.0.1/tcp/${30_000 + agents.indexOf(agentId)}`

  const observed: Observed[] = []
  const runs: HandlerRun[] = []
  const tasks: MadeTask[] = []
  const balances: DurableLog['balances'][number][] = []
  /** Ends that providers have reached, and acknowledged tasks that have not come to one yet. */
  const ended = new Set<string>()
  const owed = new Set<string>()
  const lives = new Map<string, number>()
  const running = new Map<string, Peer>()
  net.onEvent((agentId, event) => {
    observed.push({ at: net.timeline.now(), agentId, life: lives.get(agentId) ?? 0, event })
    if (event.type === 'task.acknowledged') {
      const key = `${event.agentId} ${agentId} ${event.taskId}`
      if (!ended.has(key)) owed.add(key)
    } else if (event.type === 'task.state' && ENDS.has(event.state)) {
      const key = `${agentId} ${event.from} ${event.taskId}`
      ended.add(key)
      owed.delete(key)
    }
  })
  const context = {
    random: random.fork('work'),
    now: () => net.timeline.now(),
    async sleep(agentId: string, ms: number, signal: AbortSignal) {
      const life = lives.get(agentId)
      await net.sleep(ms, { signal })
      // Nothing of a dead process goes on.
      if (lives.get(agentId) !== life) await new Promise(() => undefined)
    },
    ran: (run: Omit<HandlerRun, 'life'>) => runs.push({ ...run, life: lives.get(run.agentId) ?? 0 }),
  }
  const launch = async (agentId: string): Promise<void> => {
    lives.set(agentId, (lives.get(agentId) ?? 0) + 1)
    // As services have it: each comes back where it was, and some of them are known to all.
    const bootstrap = agents.slice(0, 3).filter((other) => other !== agentId)
    const peer = await net.launch(agentId, (peer) => provideTasks(peer, context), {
      listen: [addressOf(agentId)],
      bootstrap: bootstrap.map((other) => `${addressOf(other)}/p2p/${net.peerId(other)}`),
    })
    running.set(agentId, peer)
    for (const task of tasks) {
      if (task.from !== agentId || task.taskId === undefined || task.ends.length > 0) continue
      follow(peer.task(TASKS[task.effects], task.taskId), task, context)
    }
  }

  for (const agentId of agents) await net.until(launch(agentId))
  await net.advance(1_000)
  let number = 0
  let now = 0
  const workMs = random.chance(LONG_SHARE) ? WORK_MS.long : WORK_MS.usual
  for (const step of createPlan({ random, agents, workMs })) {
    await net.advance(Math.max(0, step.at - now))
    now = step.at
    const peer = running.get(step.agent)
    const [one, other] = [net.peerId(step.agent), net.peerId(step.other)]
    switch (step.kind) {
      case 'submit':
        if (peer) tasks.push(submitTask(peer, agents, number++, context))
        break
      case 'submitTo':
        if (peer) tasks.push(submitTask(peer, agents, number++, context, step.other))
        break
      case 'cut':
        net.faults.cut(one, other)
        break
      case 'stall':
        net.faults.stall(one, { forMs: step.forMs })
        break
      case 'partition':
        net.faults.partition([[one, other]])
        break
      case 'heal':
        net.faults.heal()
        break
      case 'crash':
        if (!peer) break
        running.delete(step.agent)
        balances.push({ agentId: step.agent, ...peer.balance() })
        for (const task of tasks) if (task.from === step.agent && task.taskId === undefined) task.orphaned = true
        await net.crash(step.agent)
        break
      case 'restart':
        if (!peer) await net.until(launch(step.agent))
        break
    }
  }
  net.faults.heal()
  healed = true
  const healedAt = net.timeline.now()
  // Until everybody knows, and no longer: what is left of the time would only cost some.
  const untold = ({ orphaned, refused, ends }: MadeTask) => !orphaned && refused === undefined && ends.length === 0
  const open = () => owed.size > 0 || tasks.some(untold)
  for (let waited = 0; waited < DRAIN_MS + 5_000 && (open() || waited < LINGER_MS); waited += 500)
    await net.advance(500)
  const log: DurableLog = {
    observed,
    tasks,
    runs,
    balances: [...balances, ...[...running.values()].map((peer) => ({ agentId: peer.agentId, ...peer.balance() }))],
    forged: attack.forged,
    healedAt,
    endedAt: net.timeline.now(),
  }
  const hash = net.trace.hash()
  await net[Symbol.asyncDispose]()
  const states = (state: string) => count(observed, ({ event }) => event.type === 'task.state' && event.state === state)
  const seen = (type: Observed['event']['type']) => count(observed, ({ event }) => event.type === type)
  return {
    seed,
    hash,
    peers: agents.length,
    broken: Object.entries(DURABLE_CHECKERS).flatMap(([name, check]) => check(log).map((what) => `${name}: ${what}`)),
    tasks: tasks.length,
    ends: tally(tasks.map((task) => task.ends[0]?.state ?? task.refused ?? (task.orphaned ? 'orphaned' : 'open'))),
    exercised: {
      completed: states('completed'),
      failed: states('failed'),
      cancelled: states('cancelled'),
      interrupted: states('interrupted'),
      'run again': states('accepted'),
      'resumed watch': seen('task.resumed'),
      resent: seen('outbox.resent'),
      'submit joined': seen('task.joined'),
      acknowledged: seen('task.acknowledged'),
    },
  }
}

/** 5 to 25 peers, mostly few: what breaks with many is seen in few runs, and each of them takes long. */
function peersOf(random: SeededRandom): number {
  return random.chance(0.04) ? random.int(10, 25) : random.int(5, 7)
}

interface Step {
  at: number
  kind: 'submit' | 'submitTo' | 'cut' | 'stall' | 'partition' | 'heal' | 'crash' | 'restart'
  agent: string
  other: string
  forMs: number
}

/** All that will happen, in order of time, before anything happens: the run itself draws nothing that could shift it. */
function createPlan({
  random,
  agents,
  workMs,
}: {
  random: SeededRandom
  agents: readonly string[]
  workMs: number
}): Step[] {
  const share = workMs / WORK_MS.long
  const steps: Step[] = []
  const add = (kind: Step['kind'], at: number, forMs = 0, from?: string, to?: string) => {
    const agent = from ?? random.pick(agents.filter((one) => one !== to))
    const other = to ?? random.pick(agents.filter((one) => one !== agent))
    steps.push({ kind, at, agent, other, forMs })
    return agent
  }
  for (let i = 0; i < 34 * share; i++) add('submit', random.int(0, workMs))
  for (let i = 0; i < 7 * share; i++) add('cut', random.int(0, workMs))
  for (let i = 0; i < 3 * share; i++) add('stall', random.int(0, workMs), random.int(500, 6_000))
  // 1 to 60 s, or as long as the work goes on.
  const parted = random.int(0, workMs / 4)
  add('partition', parted)
  add('heal', parted + random.int(1_000, Math.min(60_000, workMs - parted)))
  // Half of the crashes come while work that was just handed out is under way.
  for (let i = 0; i < 9 * share; i++) {
    const at = random.int(1_000, workMs - 6_000)
    const agent = add('crash', at)
    add('restart', at + random.int(100, 5_000), 0, agent)
    if (i % 2 === 0) for (let j = 0; j < 4; j++) add('submitTo', at - random.int(100, 900), 0, undefined, agent)
  }
  return steps.sort((a, b) => a.at - b.at)
}
