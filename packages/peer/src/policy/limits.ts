import { HermesError } from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import type { Rule } from './read.ts'

/** Counts what agents use by each rule. Keyed by the agent id that a key has proven, and by nothing that a caller chooses. */
export interface Limits {
  /**
   * Takes a place, and one call of the rate, for each pair; either for all of them or, with the refusal, for none. `take` false: only
   * looks. Gives the way to give the places back.
   */
  enter(uses: readonly Use[]): (() => void) | HermesError
  /** Takes the places alone, whatever the limits say: for work of an earlier life that goes on. */
  resume(uses: readonly Use[]): () => void
  /** Counts kept. */
  readonly size: number
}

export interface Use {
  readonly agentId: string
  readonly rule: Rule
}

interface Count {
  /** Calls that may begin at once, as of `at`. */
  tokens: number
  /** Monotonic ms. */
  at: number
  running: number
}

export function createLimits({ clock, most }: { clock: Clock; most: number }): Limits {
  /** By agent and rule. A count that is full and at rest says nothing, and is dropped when there is no room. */
  const counts = new Map<string, Map<string, Count>>()
  let size = 0

  const burst = (rule: Rule): number => Math.max(1, rule.maxQps ?? 1)
  const refill = (count: Count, rule: Rule): void => {
    const now = clock.monotonic()
    count.tokens = Math.min(burst(rule), count.tokens + (Math.max(0, now - count.at) * (rule.maxQps ?? 0)) / 1000)
    count.at = now
  }

  const sweep = (): void => {
    const now = clock.monotonic()
    for (const [agentId, own] of counts) {
      for (const [key, count] of own) {
        // Whatever the rate, after that long the bucket of all but the slowest is full; those stay.
        const rate = Number(key.slice(0, key.indexOf(' ')))
        const full = rate === 0 || count.tokens + ((now - count.at) * rate) / 1000 >= Math.max(1, rate)
        if (count.running > 0 || !full) continue
        own.delete(key)
        size--
      }
      if (own.size === 0) counts.delete(agentId)
    }
  }

  const find = ({ agentId, rule }: Use): Count | undefined => {
    const key = keyOf(rule)
    let own = counts.get(agentId)
    let count = own?.get(key)
    if (!count) {
      if (size >= most) sweep()
      if (size >= most) return undefined
      own = counts.get(agentId)
      if (!own) {
        own = new Map()
        counts.set(agentId, own)
      }
      count = { tokens: burst(rule), at: clock.monotonic(), running: 0 }
      own.set(key, count)
      size++
    }
    return count
  }

  const limited = (uses: readonly Use[]): readonly Use[] =>
    uses.filter(({ rule }) => rule.maxQps !== undefined || rule.maxConcurrency !== undefined)

  const placesOf = (held: readonly Count[]): (() => void) => {
    if (held.length === 0) return NOTHING
    for (const count of held) count.running++
    let over = false
    return () => {
      if (over) return
      over = true
      for (const count of held) count.running--
    }
  }

  return {
    enter(uses) {
      const found: { count: Count; rule: Rule }[] = []
      for (const use of limited(uses)) {
        const count = find(use)
        if (!count) return exceeded('too many agents are counted at once', 1000)
        const { rule } = use
        refill(count, rule)
        if (rule.maxConcurrency !== undefined && count.running >= rule.maxConcurrency) {
          return exceeded(`${rule.maxConcurrency} of that are under way already`, 100)
        }
        if (rule.maxQps !== undefined && count.tokens < 1) {
          return exceeded(`${rule.maxQps} a second`, Math.ceil(((1 - count.tokens) * 1000) / rule.maxQps))
        }
        found.push({ count, rule })
      }
      for (const { count, rule } of found) if (rule.maxQps !== undefined) count.tokens -= 1
      return placesOf(found.filter(({ rule }) => rule.maxConcurrency !== undefined).map(({ count }) => count))
    },
    resume(uses) {
      const held = limited(uses).flatMap((use) => {
        const count = use.rule.maxConcurrency === undefined ? undefined : find(use)
        return count ? [count] : []
      })
      return placesOf(held)
    },
    get size() {
      return size
    },
  }
}

const NOTHING = (): void => undefined

/** A rule that is read again unchanged goes on with its counts: who changes another line refills no bucket. */
function keyOf({ at, maxQps, maxConcurrency }: Rule): string {
  return `${maxQps ?? 0} ${maxConcurrency ?? 0} ${at}`
}

function exceeded(what: string, retryAfterMs: number): HermesError {
  return new HermesError('QUOTA_EXCEEDED', { message: `more was asked for than is allowed: ${what}`, retryAfterMs })
}
