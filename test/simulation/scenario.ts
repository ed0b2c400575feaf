import { createEnvelopeFaults, type FaultKind, type SeededRandom, testNetwork } from '@hermes-peer/testkit'
import type { Peer, SendFilter } from 'hermes-peer'
import { createAttack } from './attack.ts'
import { CHECKERS, type Observed, type RunLog } from './checkers.ts'
import { count, sum, tally } from './tally.ts'
import { type HandlerRun, type MadeCall, makeCall, provideWork } from './workload.ts'

export interface ScenarioOptions {
  readonly seed: number
  /** Virtual ms in which calls are made and faults happen. Default 40,000. */
  readonly workMs?: number
  readonly peers?: number
}

/** How often something happened that a run is meant to exercise. */
export type Exercise =
  | 'duplicate joined'
  | 'stored outcome'
  | 'gap given up'
  | 'failover'
  | 'unseen'
  | 'OUTCOME_UNKNOWN'
  | 'replayed'
  | 'forged'

export interface ScenarioResult {
  readonly seed: number
  readonly hash: string
  readonly broken: readonly string[]
  readonly calls: number
  readonly succeeded: number
  readonly codes: Readonly<Record<string, number>>
  readonly faults: Readonly<Record<FaultKind | 'dropped' | 'duplicated' | 'reordered', number>>
  readonly exercised: Readonly<Record<Exercise, number>>
}

const AGENTS = ['amber', 'birch', 'cedar', 'delta', 'ember', 'fjord', 'grove', 'haven', 'inlet', 'jetty']

/** One simulated run: peers that call one another while everything that can break breaks, all of it drawn from the seed. */
export async function runScenario({ seed, workMs = 40_000, peers = 5 }: ScenarioOptions): Promise<ScenarioResult> {
  const agents = AGENTS.slice(0, peers)
  const attack = createAttack()
  const envelopeFaults = new Map<string, ReturnType<typeof createEnvelopeFaults>>()
  const net = testNetwork({
    seed,
    skewMs: (agentId) => skews.get(agentId) ?? 0,
    sendFilter: (agentId) => filterOf(agentId),
  })
  const random = net.random.fork('scenario')
  const skews = new Map(agents.map((agentId) => [agentId, random.int(-240_000, 240_000)]))
  const filterOf = (agentId: string): SendFilter => {
    let faults = envelopeFaults.get(agentId)
    if (!faults) {
      faults = createEnvelopeFaults({
        random: random.fork(`envelopes:${agentId}`),
        clock: net.timeline.clock(),
        drop: 0.04,
        duplicate: 0.06,
        reorder: 0.1,
      })
      envelopeFaults.set(agentId, faults)
    }
    const disturb = faults
    const draw = random.fork(`attack:${agentId}`)
    return (to, frame, deliver) => {
      attack.onFrame({ from: agentId, to, frame, deliver, draw })
      disturb(frame, deliver)
    }
  }
  net.faults.gossip({ loss: 0.05, duplicate: 0.05, reorder: 0.05 })

  const observed: Observed[] = []
  const runs: HandlerRun[] = []
  const calls: MadeCall[] = []
  const balances: RunLog['balances'][number][] = []
  const lives = new Map<string, number>()
  const running = new Map<string, Peer>()
  net.onEvent((agentId, event) => {
    observed.push({ at: net.timeline.now(), agentId, life: lives.get(agentId) ?? 0, event })
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
    const started = net.launch(agentId, (peer) => provideWork(peer, context))
    running.set(agentId, await started)
  }

  for (const agentId of agents) await net.until(launch(agentId))
  await net.advance(1_000)
  const plan = createPlan({ random, workMs, agents })
  let number = 0
  let now = 0
  for (const step of plan) {
    await net.advance(Math.max(0, step.at - now))
    now = step.at
    const peer = running.get(step.agent)
    switch (step.kind) {
      case 'call':
        if (peer) calls.push(makeCall(peer, agents, number++, context))
        break
      case 'cutCall':
        if (!peer) break
        calls.push(makeCall(peer, agents, number++, context, { effects: 'once', agent: step.other }))
        net.faults.cut(net.peerId(step.agent), net.peerId(step.other), { afterBytes: step.forMs })
        break
      case 'cut':
        net.faults.cut(net.peerId(step.agent), net.peerId(step.other))
        break
      case 'delay':
        net.faults.delay(net.peerId(step.agent), net.peerId(step.other))
        break
      case 'halfOpen':
        net.faults.halfOpen(net.peerId(step.agent), net.peerId(step.other))
        break
      case 'stall':
        net.faults.stall(net.peerId(step.agent), { forMs: step.forMs })
        break
      case 'partition':
        net.faults.partition([[net.peerId(step.agent), net.peerId(step.other)]])
        break
      case 'heal':
        net.faults.heal()
        break
      case 'crash':
        if (!peer) break
        running.delete(step.agent)
        balances.push({ agentId: step.agent, ...peer.balance() })
        for (const call of calls) if (call.from === step.agent && call.endedAt === undefined) call.orphaned = true
        await net.crash(step.agent)
        break
      case 'restart':
        if (!peer) await net.until(launch(step.agent))
        break
    }
  }
  // Everything heals, and whatever was begun comes to its end.
  net.faults.heal()
  net.faults.gossip({})
  // The longest deadline is 30 s. When all calls have ended sooner, only what is held behind a gap has to be given up yet.
  const open = () => calls.some(({ orphaned, endedAt }) => !orphaned && endedAt === undefined)
  for (let waited = 0; waited < 31_000 && (open() || waited < 7_000); waited += 500) await net.advance(500)
  const log: RunLog = {
    observed,
    calls,
    runs,
    balances: [...balances, ...[...running.values()].map((peer) => ({ agentId: peer.agentId, ...peer.balance() }))],
    forged: attack.forged,
    endedAt: net.timeline.now(),
  }
  const hash = net.trace.hash()
  const hits = net.faults.hits
  await net[Symbol.asyncDispose]()
  return {
    seed,
    hash,
    broken: Object.entries(CHECKERS).flatMap(([name, check]) => check(log).map((what) => `${name}: ${what}`)),
    calls: calls.length,
    succeeded: calls.filter(({ code }) => code === 'OK').length,
    codes: tally(calls.map(({ code, orphaned }) => code ?? (orphaned ? 'orphaned' : 'open'))),
    faults: {
      ...hits,
      dropped: sum([...envelopeFaults.values()].map((faults) => faults.hits.dropped)),
      duplicated: sum([...envelopeFaults.values()].map((faults) => faults.hits.duplicated)),
      reordered: sum([...envelopeFaults.values()].map((faults) => faults.hits.reordered)),
    },
    exercised: {
      'duplicate joined': count(observed, ({ event }) => event.type === 'dedup.joined'),
      'stored outcome': count(observed, ({ event }) => event.type === 'dedup.stored'),
      'gap given up': count(observed, ({ event }) => event.type === 'window.gap'),
      failover: count(observed, ({ event }) => event.type === 'call.failover'),
      unseen: count(observed, ({ event }) => event.type === 'call.outcome' && event.state === 'unseen'),
      OUTCOME_UNKNOWN: count(observed, ({ event }) => event.type === 'call.ended' && event.code === 'OUTCOME_UNKNOWN'),
      replayed: attack.replayed(),
      forged: attack.forged.size,
    },
  }
}

interface Step {
  at: number
  kind: 'call' | 'cutCall' | 'cut' | 'delay' | 'halfOpen' | 'stall' | 'partition' | 'heal' | 'crash' | 'restart'
  agent: string
  other: string
  forMs: number
}

/** All that will happen, in order of time, before anything happens: the run itself draws nothing that could shift it. */
function createPlan({
  random,
  workMs,
  agents,
}: {
  random: SeededRandom
  workMs: number
  agents: readonly string[]
}): Step[] {
  const steps: Step[] = []
  const add = (kind: Step['kind'], at: number, forMs = 0, agent = random.pick(agents)) => {
    const other = random.pick(agents.filter((one) => one !== agent))
    steps.push({ kind, at, agent, other, forMs })
    return { agent, other }
  }
  for (let i = 0; i < 50; i++) add('call', random.int(0, workMs))
  // Bursts to one moment: what waits behind a gap is seen only when several are under way.
  for (let i = 0; i < 4; i++) {
    const at = random.int(0, workMs)
    const agent = random.pick(agents)
    for (let j = 0; j < 6; j++) add('call', at + j, 0, agent)
  }
  // Cut in the middle of a request or of its answer.
  for (let i = 0; i < 6; i++) add('cutCall', random.int(0, workMs), random.int(0, 1_800))
  for (let i = 0; i < 4; i++) add('cut', random.int(0, workMs))
  for (let i = 0; i < 5; i++) add('delay', random.int(0, workMs))
  for (let i = 0; i < 2; i++) add('halfOpen', random.int(0, workMs))
  for (let i = 0; i < 2; i++) add('stall', random.int(0, workMs), random.int(500, 6_000))
  for (let i = 0; i < 2; i++) {
    const at = random.int(0, workMs - 11_000)
    add('partition', at)
    add('heal', at + random.int(1_000, 10_000))
  }
  for (let i = 0; i < 3; i++) {
    const at = random.int(0, workMs - 6_000)
    const { agent } = add('crash', at)
    add('restart', at + random.int(100, 5_000), 0, agent)
  }
  return steps.sort((a, b) => a.at - b.at)
}
