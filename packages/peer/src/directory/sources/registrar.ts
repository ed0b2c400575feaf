import type { Clock, Timer } from '../../clock.ts'
import type { Tunables } from '../../defaults.ts'
import type { Random } from '../../random.ts'
import type { SourceHealth } from './health.ts'
import type { DirectorySource, Registration } from './source.ts'
import { reasonOf, tooLate } from './unreachable.ts'

export interface RegistrarOptions {
  readonly sources: readonly DirectorySource[]
  readonly health: SourceHealth
  readonly clock: Clock
  readonly random: Random
  readonly tunables: Tunables
  /** What this peer offers now. */
  own(): Omit<Registration, 'leaseMs'>
}

/** Keeps this peer registered at every source, each by itself: a source that fails or hangs holds up neither the others nor anybody else. */
export interface Registrar {
  start(): void
  /** What this peer offers has changed. */
  changed(): void
  /** Takes the registrations back; resolves when that is done, or given up. */
  withdraw(): Promise<void>
}

/** First wait after a failure, ms; doubles up to the time between two renewals, with full jitter. */
const FIRST_WAIT_MS = 500
/** What taking it back may take, ms: whoever cannot be told now learns it by the lease. */
const GOODBYE_MS = 500

export function createRegistrar(options: RegistrarOptions): Registrar {
  const keepers = options.sources.map((source) => new Keeper(source, options))
  return {
    start: () => {
      for (const keeper of keepers) keeper.register()
    },
    changed: () => {
      for (const keeper of keepers) keeper.register()
    },
    withdraw: async () => {
      await Promise.all(keepers.map((keeper) => keeper.withdraw()))
    },
  }
}

/** One registration at one source. */
class Keeper {
  readonly #source: DirectorySource
  readonly #options: RegistrarOptions
  #timer: Timer | undefined
  #failures = 0
  #running: Promise<void> | undefined
  /** The source does not have what this peer offers now. */
  #outdated = false
  #registered = false
  #withdrawn = false
  /** Of the attempt that runs. */
  #attempt = new AbortController()

  constructor(source: DirectorySource, options: RegistrarOptions) {
    this.#source = source
    this.#options = options
  }

  register(): void {
    this.#outdated = true
    this.#go()
  }

  async withdraw(): Promise<void> {
    if (this.#withdrawn) return
    this.#withdrawn = true
    this.#options.clock.clear(this.#timer)
    this.#attempt.abort(new Error('it is taken back'))
    await this.#running
    if (!this.#registered) return
    await this.#limited(GOODBYE_MS, (signal) => this.#source.unregister({ signal })).catch(() => undefined)
  }

  #go(): void {
    const { clock } = this.#options
    if (this.#withdrawn || this.#running !== undefined) return
    clock.clear(this.#timer)
    this.#running = this.#once().finally(() => {
      this.#running = undefined
      if (this.#withdrawn) return
      if (this.#outdated && this.#failures === 0) this.#go()
      else this.#later()
    })
  }

  #later(): void {
    const { clock, random, tunables } = this.#options
    // With a third of the lease left two renewals have failed.
    const regular = tunables.directoryLeaseMs / 3
    if (this.#failures > 0) {
      const most = Math.min(regular, FIRST_WAIT_MS * 2 ** Math.min(this.#failures, 20))
      this.#timer = clock.after(Math.max(1, random.next() * most), () => this.#go())
    } else if (this.#source.leased && this.#registered) {
      this.#timer = clock.after(regular, () => this.#go())
    }
  }

  async #once(): Promise<void> {
    const { own, tunables, health } = this.#options
    try {
      const registration = own()
      if (this.#outdated) {
        this.#outdated = false
        if (registration.capabilities.length === 0 && !this.#registered) return
        this.#registered = true
        await this.#limited(tunables.lookupTimeoutMs, (signal) =>
          this.#source.register({ ...registration, leaseMs: tunables.directoryLeaseMs }, { signal }),
        )
      } else await this.#limited(tunables.lookupTimeoutMs, (signal) => this.#source.renew({ signal }))
      this.#failures = 0
      if (this.#source.leased) health.answered(this.#source.name)
    } catch (error) {
      if (this.#withdrawn) return
      this.#failures++
      this.#outdated = true
      health.failed(this.#source.name, reasonOf(error))
    }
  }

  async #limited(ms: number, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { clock } = this.#options
    const stop = new AbortController()
    this.#attempt = stop
    const timer = clock.after(ms, () => stop.abort(tooLate()))
    try {
      await work(stop.signal)
    } finally {
      clock.clear(timer)
    }
  }
}
