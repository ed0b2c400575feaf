import { LRUCache } from 'lru-cache'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Telemetry } from '../telemetry/events.ts'
import type { Verdict } from './verdict.ts'

/** Whether an agent may be asked for a capability, as far as its failures go. */
export type BreakerState =
  | { readonly state: 'closed' }
  /** It is not asked before `probeInMs` are over. */
  | { readonly state: 'open'; readonly because: string; readonly probeInMs: number }
  /** The next call is its probe; nobody else is let through before that one has ended. */
  | { readonly state: 'half-open'; readonly because: string; readonly probing: boolean }

/** How the call went. `event` names what may take many calls with it at a time: all of these count as one failure. */
export interface CallEnd {
  readonly verdict: Verdict
  readonly code?: string | undefined
  readonly event?: string | undefined
}

/**
 * Keeps calls away from an agent that fails them, per capability: a failing agent is fast and idle, so that its load and
 * latency attract the traffic. Opens at `breakerRow` failures in a row, or at the share `breakerShare` of at least
 * `breakerLeast` calls in `breakerWindowMs`; after `breakerOpenMs` one single call may try.
 */
export interface Breaker {
  read(agentId: string, capability: string): BreakerState
  /**
   * A call goes there. Returns the way to tell how it ended, which is to be called in any case, once; undefined when it may
   * not go there, as it is open or another call is the probe.
   */
  begin(agentId: string, capability: string): ((end: CallEnd) => void) | undefined
}

export interface BreakerOptions {
  readonly clock: Clock
  readonly tunables: Tunables
  readonly telemetry: Telemetry
  /** What was learned of its failing time is void: it works again. */
  readonly closed: (agentId: string, capability: string) => void
}

/** Pairs of agent and capability kept; the longest unused go first, and begin anew as closed. */
const MOST_PAIRS = 10_000
/** Steps that the window moves in. */
const BUCKETS = 30
const CLOSED: BreakerState = { state: 'closed' }
const at = (window: Uint32Array, index: number): number => window[index] as number

interface Pair {
  state: 'closed' | 'open' | 'half-open'
  /** Counts the changes of state: what a call of an earlier one tells is of no use any more. */
  turn: number
  row: number
  lastEvent: string | undefined
  /** Per bucket: its number + 1, calls, failures. */
  window: Uint32Array
  openedAt: number
  because: string
  probing: boolean
}

export function createBreaker(options: BreakerOptions): Breaker {
  const { clock, tunables, telemetry } = options
  const pairs = new LRUCache<string, Pair>({ maxSize: MOST_PAIRS, sizeCalculation: () => 1 })
  const keyOf = (agentId: string, capability: string) => `${agentId}#${capability}`

  const bucketNow = (): number => Math.floor((clock.monotonic() * BUCKETS) / tunables.breakerWindowMs)

  const counted = (pair: Pair, failed: boolean): { calls: number; failures: number } => {
    const { window } = pair
    const name = bucketNow() + 1
    const own = (name % BUCKETS) * 3
    if (window[own] !== name) window.set([name, 0, 0], own)
    window.set([name, at(window, own + 1) + 1, at(window, own + 2) + (failed ? 1 : 0)], own)
    let calls = 0
    let failures = 0
    for (let i = 0; i < window.length; i += 3) {
      if (at(window, i) <= name - BUCKETS) continue
      calls += at(window, i + 1)
      failures += at(window, i + 2)
    }
    return { calls, failures }
  }

  const open = (pair: Pair, agentId: string, capability: string, because: string): void => {
    pair.state = 'open'
    pair.turn++
    pair.row = 0
    pair.window.fill(0)
    pair.probing = false
    pair.openedAt = clock.monotonic()
    pair.because = because
    telemetry.emit('breaker.opened', { agentId, capability, because, probeInMs: tunables.breakerOpenMs })
  }

  const close = (pair: Pair, agentId: string, capability: string): void => {
    pair.state = 'closed'
    pair.turn++
    pair.probing = false
    pair.lastEvent = undefined
    telemetry.emit('breaker.closed', { agentId, capability })
    options.closed(agentId, capability)
  }

  /** What the time alone changes. */
  const current = (pair: Pair): Pair => {
    if (pair.state === 'open' && clock.monotonic() - pair.openedAt >= tunables.breakerOpenMs) {
      pair.state = 'half-open'
      pair.turn++
    }
    return pair
  }

  const endProbe = (pair: Pair, agentId: string, capability: string, { verdict, code }: CallEnd): void => {
    // It told nothing of the agent: the next call is the probe.
    pair.probing = false
    if (verdict === 'well') close(pair, agentId, capability)
    else if (verdict === 'failed') open(pair, agentId, capability, `its probe failed${code ? ` with ${code}` : ''}`)
  }

  const endCall = (pair: Pair, agentId: string, capability: string, { verdict, code, event }: CallEnd): void => {
    if (verdict === 'nothing') return
    const failed = verdict === 'failed'
    if (failed && event !== undefined) {
      if (pair.lastEvent === event) return
      pair.lastEvent = event
    }
    pair.row = failed ? pair.row + 1 : 0
    const { calls, failures } = counted(pair, failed)
    const last = code ? `, the last with ${code}` : ''
    if (pair.row >= tunables.breakerRow) {
      open(pair, agentId, capability, `${pair.row} failures in a row${last}`)
    } else if (calls >= tunables.breakerLeast && failures >= calls * tunables.breakerShare) {
      open(pair, agentId, capability, `${failures} of ${calls} calls failed${failed ? last : ''}`)
    }
  }

  return {
    read(agentId, capability) {
      const found = pairs.get(keyOf(agentId, capability))
      if (!found || found.state === 'closed') return CLOSED
      const { state, because, probing, openedAt } = current(found)
      if (state === 'open') {
        return { state, because, probeInMs: Math.ceil(openedAt + tunables.breakerOpenMs - clock.monotonic()) }
      }
      return { state: 'half-open', because, probing }
    },

    begin(agentId, capability) {
      const key = keyOf(agentId, capability)
      let found = pairs.get(key)
      if (!found) {
        found = {
          state: 'closed',
          turn: 0,
          row: 0,
          lastEvent: undefined,
          window: new Uint32Array(BUCKETS * 3),
          openedAt: 0,
          because: '',
          probing: false,
        }
        pairs.set(key, found)
      }
      const pair = current(found)
      if (pair.state === 'open' || pair.probing) return undefined
      const probe = pair.state === 'half-open'
      if (probe) {
        pair.probing = true
        telemetry.emit('breaker.probe', { agentId, capability })
      }
      const { turn } = pair
      let over = false
      return (end) => {
        // What began before it opened says nothing of how it is now.
        if (over || pair.turn !== turn) return
        over = true
        if (probe) endProbe(pair, agentId, capability, end)
        else endCall(pair, agentId, capability, end)
      }
    },
  }
}
