import type { Clock, Timer } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Random } from '../random.ts'

export interface ReconnectOptions {
  readonly clock: Clock
  readonly random: Random
  readonly tunables: Tunables
  /** Tries once; rejects when it failed. */
  attempt(name: string): Promise<void>
  /** Whether something waits for that peer: then the waits stay short. */
  wanted(name: string): boolean
  waiting(name: string, inMs: number, failures: number): void
}

/** Redials with full jitter and doubling waits, one timer per name; names are bounded by who was linked before. */
export interface Reconnector {
  /** Begins for a name, unless it is under way. `stable`: the lost link had stood for long, so the waits start over. */
  begin(name: string, stable: boolean): void
  /** Ends for a name: it is linked again, or nobody wants it. */
  end(name: string): void
  stop(): void
}

/** Names under way at once; further ones are left to the next look-up. */
const MOST = 300

export function createReconnector(options: ReconnectOptions): Reconnector {
  const { clock, random, tunables, attempt, wanted, waiting } = options
  const running = new Map<string, { failures: number; timer: Timer | undefined; dialling: boolean }>()
  const memory = new Map<string, number>()
  let stopped = false

  const schedule = (name: string): void => {
    const state = running.get(name)
    if (!state || stopped) return
    const cap = wanted(name) ? tunables.reconnectCapMs : tunables.reconnectIdleCapMs
    const most = Math.min(cap, tunables.reconnectMs * 2 ** Math.min(state.failures, 20))
    const inMs = Math.max(1, Math.round(random.next() * most))
    waiting(name, inMs, state.failures)
    state.timer = clock.after(inMs, () => {
      state.dialling = true
      attempt(name).then(
        () => end(name),
        () => {
          state.dialling = false
          state.failures++
          schedule(name)
        },
      )
    })
  }

  const end = (name: string): void => {
    const state = running.get(name)
    if (!state) return
    clock.clear(state.timer)
    running.delete(name)
    if (!state.dialling) return
    // Kept until the link has proven stable, so that a flapping peer is not dialled each second.
    memory.set(name, state.failures + 1)
    if (memory.size > MOST) memory.delete(memory.keys().next().value as string)
  }

  return {
    begin(name, stable) {
      if (stopped || running.has(name) || running.size >= MOST) return
      if (stable) memory.delete(name)
      running.set(name, { failures: memory.get(name) ?? 0, timer: undefined, dialling: false })
      schedule(name)
    },
    end,
    stop() {
      stopped = true
      for (const { timer } of running.values()) clock.clear(timer)
      running.clear()
    },
  }
}
