import { type FaultKind, type SeededRandom, seededRandom } from '@hermes-peer/testkit'
import { CHECKERS, type RunLog } from './checkers.ts'
import { createPlanner, type Step } from './plan.ts'
import { createStage, type KeyRing } from './stage.ts'
import { count, tally } from './tally.ts'
import { type MadeCall, makeCall, provideWork } from './workload.ts'

export interface ScenarioOptions {
  readonly seed: number
  readonly keys?: KeyRing
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
  readonly codes: Readonly<Record<string, number>>
  readonly faults: Readonly<Record<FaultKind | 'dropped' | 'duplicated' | 'reordered', number>>
  readonly exercised: Readonly<Record<Exercise, number>>
}

const AGENTS = ['amber', 'birch', 'cedar', 'delta', 'ember']
/** Virtual ms in which calls are made and faults happen. */
const WORK_MS = 22_000
/** The longest deadline, and what is held behind a gap until it is given up: later nothing more can happen. */
const SETTLE_MS = { least: 7_000, most: 31_000 }

/** One simulated run: peers that call one another while everything that can break breaks, all of it drawn from the seed. */
export async function runScenario({ seed, keys }: ScenarioOptions): Promise<ScenarioResult> {
  const random = seededRandom(seed).fork('scenario')
  const calls: MadeCall[] = []
  const stage = createStage({
    seed,
    random,
    agents: AGENTS,
    envelopes: { drop: 0.04, duplicate: 0.06, reorder: 0.1 },
    provide: provideWork,
    crashed(agentId) {
      for (const call of calls) if (call.from === agentId && call.endedAt === undefined) call.orphaned = true
    },
    ...(keys ? { keys } : {}),
  })
  const { net } = stage
  const context = { ...stage.context, calls }
  net.faults.gossip({ loss: 0.05, duplicate: 0.05, reorder: 0.05 })
  await stage.open()
  await stage.play(createPlan(random), ({ kind, agent, other, forMs }, peer) => {
    if (kind === 'call') makeCall(peer, AGENTS, context)
    if (kind !== 'cutCall') return
    makeCall(peer, AGENTS, context, { effects: 'once', agent: other })
    net.faults.cut(net.peerId(agent), net.peerId(other), { afterBytes: forMs })
  })
  stage.heal()
  await stage.settle(() => calls.some(({ orphaned, endedAt }) => !orphaned && endedAt === undefined), SETTLE_MS)
  const { hash, faults, replayed, ...end } = await stage.close()
  const log: RunLog = { ...end, calls }
  const { observed, forged } = log
  return {
    seed,
    hash,
    broken: Object.entries(CHECKERS).flatMap(([name, check]) => check(log).map((what) => `${name}: ${what}`)),
    calls: calls.length,
    codes: tally(calls.map(({ code, orphaned }) => code ?? (orphaned ? 'orphaned' : 'open'))),
    faults,
    exercised: {
      'duplicate joined': count(observed, ({ event }) => event.type === 'dedup.joined'),
      'stored outcome': count(observed, ({ event }) => event.type === 'dedup.stored'),
      'gap given up': count(observed, ({ event }) => event.type === 'window.gap'),
      failover: count(observed, ({ event }) => event.type === 'call.failover'),
      unseen: count(observed, ({ event }) => event.type === 'call.outcome' && event.state === 'unseen'),
      OUTCOME_UNKNOWN: count(observed, ({ event }) => event.type === 'call.ended' && event.code === 'OUTCOME_UNKNOWN'),
      replayed,
      forged: forged.size,
    },
  }
}

function createPlan(random: SeededRandom): Step<'call' | 'cutCall'>[] {
  const { add, often, steps } = createPlanner<'call' | 'cutCall'>({ random, workMs: WORK_MS, agents: AGENTS })
  const crashes = random.int(1, 2)
  often(18, 'call')
  // Bursts to one moment: what waits behind a gap is seen only when several are under way.
  for (let i = 0; i < 2; i++) {
    const at = random.int(0, WORK_MS)
    const agent = random.pick(AGENTS)
    for (let j = 0; j < 6; j++) add('call', at + j, { agent })
  }
  // Cut in the middle of a request or of its answer.
  often(3.5, 'cutCall', () => random.int(0, 1_800))
  often(2, 'cut')
  often(4, 'delay')
  often(1.5, 'halfOpen')
  often(1.5, 'stall', () => random.int(500, 6_000))
  for (let i = 0; i < 2; i++) {
    const at = random.int(0, WORK_MS - 11_000)
    add('partition', at)
    add('heal', at + random.int(1_000, 10_000))
  }
  for (let i = 0; i < crashes; i++) {
    const at = random.int(0, WORK_MS - 6_000)
    const { agent } = add('crash', at)
    add('restart', at + random.int(100, 5_000), { agent })
  }
  return steps()
}
