import { HermesError } from '@hermes-peer/protocol'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { FoundPeer } from '../network/network.ts'
import { onAbort, withSignal } from '../signals.ts'
import type { Telemetry } from '../telemetry/events.ts'
import { createDials, type Dials } from './dials.ts'
import type { Entry } from './entry.ts'
import type { SourceHealth } from './sources/health.ts'
import type { DirectorySource } from './sources/source.ts'
import { reasonOf, tooLate } from './sources/unreachable.ts'

export interface LookupsOptions {
  readonly clock: Clock
  readonly tunables: Tunables
  readonly telemetry: Pick<Telemetry, 'emit'>
  readonly sources: readonly DirectorySource[]
  readonly health: SourceHealth
  /** Links to a peer that a source named, as only a handshake tells which agent that is. Resolves in any case; whether there is a link. */
  meet(peer: FoundPeer, signal: AbortSignal): Promise<boolean>
}

/** What the last look-up of a capability has come to. */
export interface LookupState {
  /** Sources that could not be asked, with the reason; empty when all have answered. */
  readonly unreachable: readonly { readonly source: string; readonly reason: string }[]
  /** Age of the answer that stands in for theirs, ms; undefined when there is none that may still be used. */
  readonly staleMs: number | undefined
}

/**
 * Decides when the sources are asked for a capability, asks all of them at the same time, and once at a time. What the first one
 * finds is used at once; the slower ones add to it. An answer is kept for the time that its source cannot be asked: an empty one never.
 */
export interface Lookups {
  /**
   * The running look-up, a new one when the last is too old, or undefined while that is fresh. `force`: nobody usable is known, so
   * nothing is fresh enough.
   */
  run(capability: string, force: boolean): Promise<void> | undefined
  state(capability: string): LookupState
  /** Addresses that a source has of a peer, other than those tried; the first source that has some wins. Never rejects. */
  locate(peer: FoundPeer, capability: string, signal: AbortSignal | undefined): Promise<readonly string[]>
  stop(): void
}

/** Capabilities whose last look-up is remembered, and peers of one answer that are. */
const MOST = 1000
const MOST_KEPT = 64

interface Answer {
  readonly at: number
  readonly peers: readonly FoundPeer[]
}

interface Memory {
  /** When it was last asked for. */
  begunAt: number
  /** By source; never an empty one. */
  readonly answers: Map<string, Answer>
  readonly unreachable: Map<string, string>
}

/** Look-ups under way at which no further one is begun only to have something newer. */
const MOST_AT_A_TIME = 4

export function createLookups(options: LookupsOptions): Lookups {
  return new MergedLookups(options)
}

class MergedLookups implements Lookups {
  readonly #options: LookupsOptions
  readonly #memory = new LRUCache<string, Memory>({ maxSize: MOST, sizeCalculation: () => 1 })
  readonly #running = new Map<string, { done: Promise<void>; stop: AbortController }>()

  constructor(options: LookupsOptions) {
    this.#options = options
  }

  run(capability: string, force: boolean): Promise<void> | undefined {
    const { clock, tunables } = this.#options
    const under = this.#running.get(capability)
    if (under) return under.done
    // Somebody is known already: it can wait until others are done, as each makes the DHT dial many.
    if (!force && this.#running.size >= MOST_AT_A_TIME) return undefined
    const memory = this.#memory.get(capability)
    if (!force && memory) {
      // A source that is down is not asked with every call: most fail at once.
      const freshMs = memory.unreachable.size > 0 ? tunables.lookupRetryMs : tunables.lookupFreshMs
      if (clock.monotonic() - memory.begunAt < freshMs) return undefined
    }
    return this.#begin(capability)
  }

  state(capability: string): LookupState {
    const memory = this.#memory.peek(capability)
    if (!memory) return { unreachable: [], staleMs: undefined }
    const ages = [...memory.unreachable.keys()].flatMap((source) => {
      const age = this.#ageOf(memory.answers.get(source))
      return age === undefined ? [] : [age]
    })
    return {
      unreachable: [...memory.unreachable].map(([source, reason]) => ({ source, reason })),
      staleMs: ages.length === 0 ? undefined : Math.max(...ages),
    }
  }

  async locate(
    { peerId, addresses }: FoundPeer,
    capability: string,
    signal: AbortSignal | undefined,
  ): Promise<readonly string[]> {
    const { clock, tunables, sources } = this.#options
    const stop = new AbortController()
    const timer = clock.after(tunables.lookupTimeoutMs, () => stop.abort(tooLate()))
    const release = signal && onAbort(signal, () => stop.abort(signal.reason))
    const known = new Set(addresses)
    const ask = async (source: DirectorySource): Promise<readonly string[]> => {
      for await (const found of source.find(capability, { signal: stop.signal })) {
        if (found.peerId === peerId && found.addresses.some((address) => !known.has(address))) return found.addresses
      }
      throw new HermesError('PEER_UNREACHABLE')
    }
    try {
      return await Promise.any(sources.map((source) => withSignal(ask(source), stop.signal)))
    } catch {
      return []
    } finally {
      clock.clear(timer)
      release?.()
      stop.abort(new Error('found'))
    }
  }

  stop(): void {
    for (const { stop } of this.#running.values()) stop.abort(new HermesError('STOPPED'))
  }

  #begin(capability: string): Promise<void> {
    const { clock, tunables, sources, meet } = this.#options
    const stop = new AbortController()
    const timer = clock.after(tunables.lookupTimeoutMs, () => stop.abort(tooLate()))
    const memory = this.#memory.get(capability) ?? { begunAt: 0, answers: new Map(), unreachable: new Map() }
    memory.begunAt = clock.monotonic()
    this.#memory.set(capability, memory)
    const dials = createDials({
      clock,
      most: tunables.lookupDials,
      patienceMs: tunables.lookupDialPatienceMs,
      dial: (peer) => meet(peer, stop.signal),
    })
    const asked = sources.map((source) => this.#ask(source, capability, memory, dials, stop.signal))
    const done = Promise.all(asked)
      .then(() => withSignal(dials.idle(), stop.signal).catch(() => undefined))
      .finally(() => {
        clock.clear(timer)
        // What still waits to be dialled waits no more.
        dials.close()
        this.#running.delete(capability)
      })
    this.#running.set(capability, { done, stop })
    return done
  }

  /** Asks one source, and falls back on what it said last; never rejects. */
  async #ask(
    source: DirectorySource,
    capability: string,
    memory: Memory,
    dials: Dials,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, health, telemetry } = this.#options
    const peers: FoundPeer[] = []
    const read = async (): Promise<void> => {
      for await (const peer of source.find(capability, { signal })) {
        if (signal.aborted) return
        dials.add(peer.toldBy ?? source.name, peer)
        if (peers.length < MOST_KEPT) peers.push(peer)
      }
    }
    let fault: string | undefined
    try {
      await withSignal(read(), signal)
    } catch (error) {
      fault = reasonOf(error)
    }
    // Part of an answer is one: whoever is named can be asked.
    if (fault === undefined || peers.length > 0) {
      memory.unreachable.delete(source.name)
      if (peers.length > 0) memory.answers.set(source.name, { at: clock.monotonic(), peers })
      else memory.answers.delete(source.name)
      health.answered(source.name)
      return
    }
    memory.unreachable.set(source.name, fault)
    health.failed(source.name, fault)
    const last = memory.answers.get(source.name)
    const ageMs = this.#ageOf(last)
    if (!last || ageMs === undefined) {
      memory.answers.delete(source.name)
      return
    }
    telemetry.emit('directory.stale', { capability, source: source.name, ageMs: Math.round(ageMs) })
    for (const peer of last.peers) dials.add(peer.toldBy ?? source.name, peer)
  }

  /** Undefined for an answer that is too old to be used. */
  #ageOf(answer: Answer | undefined): number | undefined {
    const { clock, tunables } = this.#options
    const ageMs = answer && clock.monotonic() - answer.at
    return ageMs !== undefined && ageMs <= tunables.lookupStaleMs ? ageMs : undefined
  }
}

/** Throws `DIRECTORY_UNREACHABLE` where nobody usable is known, and it cannot be said that nobody offers it. */
export function demandAnswer(
  capability: string,
  found: readonly Pick<Entry, 'agentId' | 'status'>[],
  { unreachable, staleMs }: LookupState,
): void {
  if (found.some(({ status }) => status === 'online' || status === 'suspect')) return
  if (unreachable.length === 0 || staleMs !== undefined) return
  const reasons = unreachable.map(({ source, reason }) => `${source}: ${reason}`).join('; ')
  const known = found.map(({ agentId, status }) => `${agentId} is ${status}`)
  throw new HermesError('DIRECTORY_UNREACHABLE', {
    message: [`who offers ${capability} cannot be looked up: ${reasons}`, ...known].join('; '),
    details: { sources: unreachable },
  })
}
