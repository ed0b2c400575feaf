import { type SigningKey, signingKey } from '@hermes-peer/protocol'
import {
  createEnvelopeFaults,
  type EnvelopeFaults,
  type EnvelopeFaultsOptions,
  type FaultKind,
  type SeededRandom,
  seededRandom,
  type TestNetwork,
  testNetwork,
} from '@hermes-peer/testkit'
import type { Peer, PeerOptions, SendFilter } from 'hermes-peer'
import { createAttack } from './attack.ts'
import type { Observed, RunLog } from './checkers.ts'
import type { FaultStep, Step } from './plan.ts'
import { sum } from './tally.ts'
import type { HandlerRun } from './workload.ts'

/** What the handlers and callers of a simulated workload have of the world they live in. */
export interface WorkContext {
  readonly random: SeededRandom
  now(): number
  /** Resolves after virtual time, unless the life it belongs to has ended. */
  sleep(agentId: string, ms: number, signal: AbortSignal): Promise<void>
  ran(run: Omit<HandlerRun, 'life'>): void
  /** Whoever asks for work says so first: nobody else's may run. */
  asked(id: string, agentId: string): void
}

export interface StageOptions {
  readonly seed: number | string
  /** Draws the run; forked from the seed, so that it can be used before the stage is there. */
  readonly random: SeededRandom
  readonly agents: readonly string[]
  readonly envelopes: Pick<EnvelopeFaultsOptions, 'drop' | 'duplicate' | 'reorder'>
  /** Gives a peer its handlers, in each of its lives. */
  provide(peer: Peer, context: WorkContext): void
  options?(agentId: string, net: TestNetwork): Omit<PeerOptions, 'agentId'>
  /** Called in each life once it has started, and when a life has been ended by a crash. */
  started?(peer: Peer): void
  crashed?(agentId: string): void
  readonly keys?: KeyRing
}

/** Keys of agents, made once for any number of runs: a key costs as much as ten messages. */
export type KeyRing = (agentId: string) => SigningKey

export function createKeyRing(): KeyRing {
  const random = seededRandom('keys of simulated agents')
  const keys = new Map<string, SigningKey>()
  return (agentId) => {
    const key = keys.get(agentId) ?? signingKey(random.fork(agentId).bytes(32))
    keys.set(agentId, key)
    return key
  }
}

/** A network of peers in which everything can break, and what is seen of it. */
export interface Stage {
  readonly net: TestNetwork
  readonly context: WorkContext
  readonly observed: readonly Observed[]
  readonly runs: readonly HandlerRun[]
  readonly running: ReadonlyMap<string, Peer>
  /** Starts all peers and lets them find each other. */
  open(): Promise<void>
  /** Lets time pass up to each step of the plan; those that break something are carried out, the others handed to `act`. */
  play<Kind extends string>(plan: readonly Step<Kind>[], act: (step: Step<Kind>, peer: Peer) => void): Promise<void>
  /** From now on nothing breaks and no envelope is lost. */
  heal(): void
  /** Lets time pass while work is open, for at least and at most so many ms. */
  settle(open: () => boolean, times: { least: number; most: number }): Promise<void>
  /** Stops everything; what is left of the run. */
  close(): Promise<StageEnd>
}

export interface StageEnd
  extends Pick<RunLog, 'observed' | 'runs' | 'asked' | 'balances' | 'alive' | 'forged' | 'endedAt'> {
  readonly hash: string
  readonly replayed: number
  readonly faults: Readonly<Record<FaultKind | 'dropped' | 'duplicated' | 'reordered', number>>
}

/** How often `settle` looks, ms. */
const LOOK_MS = 500

export function createStage(options: StageOptions): Stage {
  const { random, agents, envelopes, provide } = options
  const attack = createAttack()
  const skews = new Map(agents.map((agentId) => [agentId, random.int(-240_000, 240_000)]))
  const disturbing = new Map<string, EnvelopeFaults>()
  let healed = false
  const net = testNetwork({
    seed: options.seed,
    ...(options.keys ? { key: options.keys } : {}),
    skewMs: (agentId) => skews.get(agentId) ?? 0,
    sendFilter: (agentId) => filterOf(agentId),
  })
  const filterOf = (agentId: string): SendFilter => {
    const clock = net.timeline.clock()
    const disturb =
      disturbing.get(agentId) ??
      createEnvelopeFaults({ random: random.fork(`envelopes:${agentId}`), clock, ...envelopes })
    disturbing.set(agentId, disturb)
    const draw = random.fork(`attack:${agentId}`)
    return (to, frame, deliver) => {
      if (healed) return deliver(frame)
      attack.onFrame({ from: agentId, to, frame, deliver, draw })
      disturb(frame, deliver)
    }
  }
  const observed: Observed[] = []
  const runs: HandlerRun[] = []
  const asked = new Map<string, Set<string>>()
  const balances: RunLog['balances'][number][] = []
  const lives = new Map<string, number>()
  const running = new Map<string, Peer>()
  const lifeOf = (agentId: string): number => lives.get(agentId) ?? 0
  net.onEvent((agentId, event) => {
    observed.push({ at: net.timeline.now(), agentId, life: lifeOf(agentId), event })
  })
  const context: WorkContext = {
    random: random.fork('work'),
    now: () => net.timeline.now(),
    async sleep(agentId, ms, signal) {
      const life = lives.get(agentId)
      await net.sleep(ms, { signal })
      // Nothing of a dead process goes on.
      if (lives.get(agentId) !== life) await new Promise(() => undefined)
    },
    ran: (run) => runs.push({ ...run, life: lifeOf(run.agentId) }),
    asked: (id, agentId) => asked.set(id, (asked.get(id) ?? new Set()).add(agentId)),
  }
  const launch = async (agentId: string): Promise<void> => {
    lives.set(agentId, lifeOf(agentId) + 1)
    const peer = await net.launch(agentId, (peer) => provide(peer, context), options.options?.(agentId, net))
    running.set(agentId, peer)
    options.started?.(peer)
  }
  const crash = async (peer: Peer): Promise<void> => {
    const { agentId } = peer
    running.delete(agentId)
    balances.push({ agentId, ...peer.balance() })
    options.crashed?.(agentId)
    await net.crash(agentId)
  }
  const breaks = async ({ kind, agent, other, forMs }: FaultStep): Promise<void> => {
    const [one, two] = [net.peerId(agent), net.peerId(other)]
    const peer = running.get(agent)
    if (kind === 'cut') net.faults.cut(one, two, forMs > 0 ? { afterBytes: forMs } : {})
    else if (kind === 'delay') net.faults.delay(one, two)
    else if (kind === 'halfOpen') net.faults.halfOpen(one, two)
    else if (kind === 'stall') net.faults.stall(one, { forMs })
    else if (kind === 'partition') net.faults.partition([[one, two]])
    else if (kind === 'heal') net.faults.heal()
    else if (kind === 'crash' && peer) await crash(peer)
    else if (kind === 'restart' && !peer) await net.until(launch(agent))
  }
  return {
    net,
    context,
    observed,
    runs,
    running,
    async open() {
      for (const agentId of agents) await net.until(launch(agentId))
      await net.advance(1_000)
    },
    async play(plan, act) {
      const start = net.timeline.now()
      for (const step of plan) {
        await net.advance(Math.max(0, start + step.at - net.timeline.now()))
        const peer = running.get(step.agent)
        if (isFault(step)) await breaks(step)
        else if (peer) act(step, peer)
      }
    },
    heal() {
      healed = true
      net.faults.heal()
      net.faults.gossip({})
    },
    async settle(open, { least, most }) {
      for (let waited = 0; waited < most && (waited < least || open()); waited += LOOK_MS) await net.advance(LOOK_MS)
    },
    async close() {
      const alive = new Map([...running.keys()].map((agentId) => [agentId, lifeOf(agentId)]))
      const all = [...balances, ...[...running.values()].map((peer) => ({ agentId: peer.agentId, ...peer.balance() }))]
      const endedAt = net.timeline.now()
      const hash = net.trace.hash()
      const seen = [...observed]
      const faults = [...disturbing.values()].map(({ hits }) => hits)
      await net[Symbol.asyncDispose]()
      return {
        observed: seen,
        runs,
        asked,
        balances: all,
        alive,
        forged: attack.forged,
        endedAt,
        hash,
        replayed: attack.replayed(),
        faults: {
          ...net.faults.hits,
          dropped: sum(faults.map(({ dropped }) => dropped)),
          duplicated: sum(faults.map(({ duplicated }) => duplicated)),
          reordered: sum(faults.map(({ reordered }) => reordered)),
        },
      }
    },
  }
}

const FAULTS: ReadonlySet<string> = new Set<FaultStep['kind']>([
  'cut',
  'delay',
  'halfOpen',
  'stall',
  'partition',
  'heal',
  'crash',
  'restart',
])

function isFault(step: Step<string>): step is FaultStep {
  return FAULTS.has(step.kind)
}
