import { createHash } from 'node:crypto'
import { HermesError, isHermesError } from '@hermes-peer/protocol'
import type { FoundPeer } from 'hermes-peer'
import { type Answers, createAnswers } from './answers.ts'
import type { Fabric } from './fabric.ts'
import type { Host } from './host.ts'
import { createRecords, type Provider, type ProviderRecords } from './records.ts'

/**
 * Provider records, kept by the peers nearest to the key among those that the announcer could reach. What is found is
 * what the reachable ones of them were told: a dead provider is found until its record expires.
 */
export interface Dht {
  provide(host: Host, cid: Uint8Array, signal: AbortSignal): Promise<void>
  unprovide(host: Host, cid: Uint8Array): void
  find(host: Host, cid: Uint8Array, signal: AbortSignal): AsyncGenerator<FoundPeer, void>
  /** Stores a record that has been judged, at the peers nearest to it; resolves with how many took it. */
  put(host: Host, key: string, value: Uint8Array, signal: AbortSignal): Promise<number>
  get(host: Host, key: string, signal: AbortSignal): Promise<Uint8Array | undefined>
  /** The DHT of this peer may have gained another: what waits for one looks again. */
  gained(host: Host): void
  /** The peer is gone, and with it what it was told. */
  forget(host: Host): void
}

export function createDht(fabric: Fabric): Dht {
  return new MemoryDht(fabric)
}

/** Peers that keep a record and that a look-up asks, as in Kademlia with k = 20. */
const KEEPERS = 20
/** Questions that a look-up has open at the same time. */
const ALPHA = 3
/** What answering takes beside the way there and back, ms. */
const ANSWER_MS = { min: 0.5, max: 2 }

interface Member {
  readonly records: ProviderRecords
  /** Signed records by key; bounded by what its judge remembers. */
  readonly values: Map<string, Uint8Array>
  /** What it announces; the value stops the repetition. Bounded by what it provides. */
  readonly announced: Map<string, () => void>
  /** Operations that wait for a first peer. Bounded by the operations that are open. */
  readonly waiting: Set<() => void>
}

/** What one peer said in a look-up. */
interface Told {
  readonly from: string
  /** It answered; nothing else is said by one that did not. */
  readonly reached: boolean
  readonly providers: readonly Provider[]
}

class MemoryDht implements Dht {
  readonly #fabric: Fabric
  readonly #members = new Map<Host, Member>()

  constructor(fabric: Fabric) {
    this.#fabric = fabric
  }

  async provide(host: Host, cid: Uint8Array, signal: AbortSignal): Promise<void> {
    const key = keyOf(cid)
    this.#repeat(host, key)
    await this.#hasPeers(host, signal)
    const answered = this.#announce(host, key)
    await this.#fabric.timeline.sleep(answered, { signal })
  }

  unprovide(host: Host, cid: Uint8Array): void {
    const key = keyOf(cid)
    const member = this.#member(host)
    member.announced.get(key)?.()
    member.announced.delete(key)
    // Others keep what they were told until it expires.
    member.records.remove(key, host.peerId)
  }

  async *find(host: Host, cid: Uint8Array, signal: AbortSignal): AsyncGenerator<FoundPeer, void> {
    await this.#hasPeers(host, signal).catch((cause: unknown) => {
      throw nobodyAnswered(cause)
    })
    const key = keyOf(cid)
    const known = new Set([host.peerId])
    const answers = this.#ask(host, key, signal)
    let answered = false
    let fault: unknown
    try {
      for (let answer = await answers.next(); answer; answer = await answers.next()) {
        if (answer.from !== host.peerId) answered ||= answer.reached
        for (const { peerId, addresses } of answer.providers) {
          if (known.has(peerId)) continue
          known.add(peerId)
          answered = true
          host.learn(peerId, addresses)
          yield { peerId, addresses: [...addresses], toldBy: answer.from }
        }
      }
    } catch (error) {
      fault = error
    } finally {
      answers.stop()
    }
    if (!answered) throw nobodyAnswered(fault)
  }

  async put(host: Host, key: string, value: Uint8Array, signal: AbortSignal): Promise<number> {
    await this.#hasPeers(host, signal).catch((cause: unknown) => {
      throw nobodyAnswered(cause)
    })
    this.#member(host).values.set(key, value.slice())
    const { timeline } = this.#fabric
    let [taken, longest] = [0, 0]
    for (const [index, keeper] of this.#keepers(host, key).entries()) {
      const round = this.#delay(host, keeper, index)
      longest = Math.max(longest, round)
      timeline.schedule(round / 2, () => {
        if (!this.#reaches(host, keeper) || !passes(keeper, key, value)) return
        this.#member(keeper).values.set(key, value.slice())
        taken++
      })
    }
    await timeline.sleep(longest, { signal }).catch(() => undefined)
    if (taken === 0) throw nobodyAnswered(signal.reason)
    return taken
  }

  async get(host: Host, key: string, signal: AbortSignal): Promise<Uint8Array | undefined> {
    await this.#hasPeers(host, signal).catch((cause: unknown) => {
      throw nobodyAnswered(cause)
    })
    const { timeline } = this.#fabric
    let answered = false
    let best = this.#member(host).values.get(key)
    let longest = 0
    for (const [index, keeper] of this.#keepers(host, key).entries()) {
      const round = this.#delay(host, keeper, index)
      longest = Math.max(longest, round)
      timeline.schedule(round, () => {
        if (!this.#reaches(host, keeper)) return
        answered = true
        const value = this.#member(keeper).values.get(key)
        // Older ones do not pass once a newer one has.
        if (value && passes(host, key, value)) best = value
      })
    }
    await timeline.sleep(longest, { signal }).catch(() => undefined)
    if (!answered) throw nobodyAnswered(signal.reason)
    return best && passes(host, key, best) ? best.slice() : undefined
  }

  gained(host: Host): void {
    const { waiting } = this.#member(host)
    for (const go of waiting) go()
    waiting.clear()
  }

  forget(host: Host): void {
    for (const stop of this.#member(host).announced.values()) stop()
    this.#members.delete(host)
  }

  #member(host: Host): Member {
    let member = this.#members.get(host)
    if (!member) {
      member = {
        records: createRecords(this.#fabric.timeline),
        values: new Map(),
        announced: new Map(),
        waiting: new Set(),
      }
      if (host.running) this.#members.set(host, member)
    }
    return member
  }

  /** A first announcement that reaches nobody is made good by the next one. */
  #repeat(host: Host, key: string): void {
    const { timeline, settings } = this.#fabric
    const { announced } = this.#member(host)
    announced.get(key)?.()
    const again = () => {
      if (!host.running) return
      this.#announce(host, key)
      announced.set(key, timeline.schedule(settings.announceMs, again))
    }
    announced.set(key, timeline.schedule(settings.announceMs, again))
  }

  /** Tells the keepers; returns how long it takes until the last one has answered, ms. */
  #announce(host: Host, key: string): number {
    const { timeline, settings } = this.#fabric
    const provider = { peerId: host.peerId, addresses: host.addresses(), expires: timeline.now() + settings.recordMs }
    this.#member(host).records.put(key, provider)
    const delays = this.#keepers(host, key).map((keeper, index) => {
      const there = this.#delay(host, keeper, index) / 2
      timeline.schedule(there, () => {
        if (this.#reaches(host, keeper)) this.#member(keeper).records.put(key, provider)
      })
      return 2 * there
    })
    return Math.max(0, ...delays)
  }

  /** Asks itself, then the keepers; each answer comes when it would. */
  #ask(host: Host, key: string, signal: AbortSignal): Answers<Told> {
    const { timeline } = this.#fabric
    const answers = createAnswers<Told>(signal)
    const told = (by: Host, reached: boolean): Told => ({
      from: by.peerId,
      reached,
      providers: reached ? this.#member(by).records.get(key) : [],
    })
    answers.expect(timeline.schedule(0, () => answers.add(told(host, true))))
    for (const [index, keeper] of this.#keepers(host, key).entries()) {
      const cancel = timeline.schedule(this.#delay(host, keeper, index), () => {
        answers.add(told(keeper, this.#reaches(host, keeper)))
      })
      answers.expect(cancel)
    }
    return answers
  }

  /** There and back, and the wait for questions asked before, ms. */
  #delay(host: Host, keeper: Host, index: number): number {
    const { paths, random } = this.#fabric
    const round = 2 * paths.latency(host.peerId, keeper.peerId) + random.between(ANSWER_MS.min, ANSWER_MS.max)
    return round * (1 + Math.floor(index / ALPHA))
  }

  #keepers(host: Host, key: string): Host[] {
    const target = digestOf(key)
    const distance = new Map(this.#reachable(host).map((other) => [other, xor(digestOf(other.peerId), target)]))
    return [...distance]
      .sort(([, a], [, b]) => Buffer.compare(a, b))
      .slice(0, KEEPERS)
      .map(([other]) => other)
  }

  /** Whether an answer still comes: the two talk directly, as Kademlia does, once a chain has led them to each other. */
  #reaches(host: Host, other: Host): boolean {
    const { paths, stalled } = this.#fabric
    return other.running && !stalled.has(other.peerId) && !paths.separated(host.peerId, other.peerId)
  }

  /** All others that a chain of usable connections leads to. */
  #reachable(host: Host): Host[] {
    const found = new Set([host])
    for (const one of found) {
      for (const end of one.ends)
        if (end.connection.usable && !this.#fabric.stalled.has(end.remotePeer)) found.add(end.remote)
    }
    found.delete(host)
    return [...found]
  }

  /** Resolves once the DHT has another peer: until then, as in kad-dht, an operation waits. */
  async #hasPeers(host: Host, signal: AbortSignal): Promise<void> {
    const { waiting } = this.#member(host)
    while (this.#reachable(host).length === 0) {
      await new Promise<void>((resolve, reject) => {
        signal.throwIfAborted()
        const giveUp = () => {
          waiting.delete(go)
          reject(signal.reason)
        }
        const go = () => {
          signal.removeEventListener('abort', giveUp)
          resolve()
        }
        waiting.add(go)
        signal.addEventListener('abort', giveUp, { once: true })
      })
    }
  }
}

function nobodyAnswered(cause: unknown): HermesError {
  if (isHermesError(cause) && cause.code === 'STOPPED') return cause
  return new HermesError('DIRECTORY_UNREACHABLE', {
    message: 'no peer of the DHT has answered',
    details: { sources: [{ source: 'dht', reason: 'no peer of the DHT has answered' }] },
    ...(cause === undefined ? {} : { cause }),
  })
}

/** Whether a peer takes a record: authentic, and not older than what it has seen. */
function passes(host: Host, key: string, value: Uint8Array): boolean {
  try {
    host.judge.judge(key, value)
    return true
  } catch {
    return false
  }
}

function keyOf(cid: Uint8Array): string {
  return Buffer.from(cid).toString('hex')
}

function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

function xor(a: Buffer, b: Buffer): Buffer {
  return a.map((byte, index) => byte ^ (b[index] as number)) as Buffer
}
