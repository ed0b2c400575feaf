import {
  type Capability,
  checkName,
  HermesError,
  kindsOf,
  type PublicKey,
  peerIdOf,
  type SigningKey,
  signCertificate,
  signingKey,
  toHex,
} from '@hermes-peer/protocol'
import {
  type AnyEvent,
  allowList,
  createKeyCheck,
  createMemoryJournal,
  createPeerWith,
  DEFAULTS,
  type EpochStore,
  type KeyCheck,
  memoryEpochStore,
  type Opened,
  type Peer,
  type PeerOptions,
  type RotationSeam,
  recordKinds,
  type SendFilter,
} from 'hermes-peer'
import type { Duration } from './clock/duration.ts'
import type { ManualClock } from './clock/manual-clock.ts'
import { createTimeline, type Timeline } from './clock/timeline.ts'
import { createSimulatedDisk, type SimulatedDisk } from './journal/simulated-disk.ts'
import type { WorldFaults } from './network/faults.ts'
import type { WorldSettings } from './network/settings.ts'
import { createMemoryWorld } from './network/world.ts'
import { type SeededRandom, seededRandom } from './random/seeded-random.ts'
import { createTrace, type Trace } from './trace.ts'

/** One attempt of a call, as it left its caller. */
export interface ObservedCall {
  readonly from: string
  readonly to: string
  readonly capability: string
  readonly messageId: string
  readonly attempt: number
  /** Virtual ms since the network began. */
  readonly at: number
}

export interface TestNetworkOptions {
  /** The same seed and the same steps give the same run. Default 1. */
  seed?: number | string
  settings?: Partial<WorldSettings>
  /** Whole-envelope faults of one agent's outgoing frames. */
  sendFilter?: (agentId: string) => SendFilter | undefined
  /** How far each agent's wall clock is off, ms. Default 0. */
  skewMs?: (agentId: string) => number
  /** Keys by agent id, when a test needs to know them. Default: derived from seed and id. */
  key?: (agentId: string) => SigningKey
  /** Team and roles that everyone's trust knows an agent by. Default: none. */
  members?: (agentId: string) => { team?: string; roles?: readonly string[] } | undefined
  /** What else an agent opens, where it is not what every agent of this network does: its certificates, its trust. */
  opened?: (agentId: string, seams: { clock: ManualClock; keys: KeyCheck }) => TestOpened
}

/** Parts of what a peer opens. With `agentSigner` it can rotate: it makes its next keys by chance. */
export type TestOpened = Partial<Pick<Opened, 'agentKey' | 'certificates' | 'agentSigner' | 'trust'>>

/** A network of real peers in memory, in virtual time, with real faults. */
export interface TestNetwork extends AsyncDisposable {
  /** The running peer of that id; started on first use, and again after a crash. It knows the first peer's address, no more. */
  peer(agentId: string, options?: Omit<PeerOptions, 'agentId'>): Promise<Peer>
  /** Like `peer`, but leaves the passing of time to the caller: what `provide`s before the start goes into `prepare`. */
  launch(agentId: string, prepare?: (peer: Peer) => void, options?: Omit<PeerOptions, 'agentId'>): Promise<Peer>
  /** Kills it: nothing of it runs any more, its connections break. */
  crash(agentId: string): Promise<void>
  /** Lets virtual time pass. */
  advance(time: Duration): Promise<void>
  /** Lets virtual time pass until the promise settles, and passes on its value or reason. */
  until<T>(goal: PromiseLike<T>, options?: { limitMs?: number }): Promise<T>
  /** For handlers: resolves after virtual time. */
  sleep(time: Duration, options?: { signal?: AbortSignal }): Promise<void>
  /** Attempts made so far, oldest first. */
  calls(contract?: Pick<Capability, 'name'>): readonly ObservedCall[]
  /** Hears every event of every peer; returns the way to stop. */
  onEvent(listener: (agentId: string, event: AnyEvent) => void): () => void
  peerId(agentId: string): string
  /** The disk of that agent's machine; it outlives each crash, and can be told to fail. */
  disk(agentId: string): SimulatedDisk
  readonly faults: WorldFaults
  readonly timeline: Timeline
  readonly random: SeededRandom
  readonly trace: Trace
}

/** Attempts remembered by `calls`; the oldest go first. */
const MOST_CALLS = 100_000

export function testNetwork(options: TestNetworkOptions = {}): TestNetwork {
  return new MemoryTestNetwork(options)
}

interface Life {
  peer: Peer
  clock: ManualClock
  started: Promise<Peer>
}

interface RotatingLife extends TestOpened {
  networkName: string
  lifeMs: number
  clock: ManualClock
  random: SeededRandom
  nodes: string[]
}

class MemoryTestNetwork implements TestNetwork {
  readonly timeline = createTimeline()
  readonly random: SeededRandom
  readonly trace = createTrace()
  readonly #options: TestNetworkOptions
  readonly #world
  readonly #lives = new Map<string, Life>()
  readonly #keys = new Map<string, SigningKey>()
  readonly #peerIds = new Map<string, string>()
  /** Keys of this network by their bytes: they were checked when they were made. Bounded by its agents. */
  readonly #own = new Map<string, PublicKey>()
  readonly #checkForeign = createKeyCheck()
  readonly #epochs = new Map<string, EpochStore>()
  /** Peer ids of all nodes that an agent has run in its present life. */
  readonly #nodes = new Map<string, string[]>()
  readonly #disks = new Map<string, SimulatedDisk>()
  readonly #calls: ObservedCall[] = []
  readonly #listeners = new Set<(agentId: string, event: AnyEvent) => void>()
  #life = 0

  constructor(options: TestNetworkOptions) {
    this.#options = options
    this.random = seededRandom(options.seed ?? 1)
    this.#world = createMemoryWorld({
      timeline: this.timeline,
      random: this.random.fork('world'),
      trace: this.trace,
      ...(options.settings ? { settings: options.settings } : {}),
    })
  }

  get faults(): WorldFaults {
    return this.#world.faults
  }

  peerId(agentId: string): string {
    let id = this.#peerIds.get(agentId)
    if (id === undefined) {
      id = peerIdOf(this.#key(agentId).publicKey.raw)
      this.#peerIds.set(agentId, id)
    }
    return id
  }

  disk(agentId: string): SimulatedDisk {
    let disk = this.#disks.get(agentId)
    if (!disk) {
      disk = createSimulatedDisk({ random: this.random.fork(`disk:${agentId}`) })
      this.#disks.set(agentId, disk)
    }
    return disk
  }

  async peer(agentId: string, options: Omit<PeerOptions, 'agentId'> = {}): Promise<Peer> {
    const life = this.#lives.get(agentId)
    return this.until(life ? life.started : this.launch(agentId, undefined, options))
  }

  launch(agentId: string, prepare?: (peer: Peer) => void, options: Omit<PeerOptions, 'agentId'> = {}): Promise<Peer> {
    checkName('agent_id', agentId, 'agentId')
    if (this.#lives.has(agentId)) {
      throw new HermesError('DUPLICATE_AGENT', { message: `${agentId} runs already`, hint: 'Crash or stop it first.' })
    }
    const skewMs = this.#options.skewMs?.(agentId) ?? 0
    const clock = this.timeline.clock({ skewMs })
    const random = this.random.fork(`peer:${agentId}:${this.#life++}`)
    const key = this.#key(agentId)
    const sendFilter = this.#options.sendFilter?.(agentId)
    const first = [...this.#lives.values()].find(({ peer }) => peer.addresses.length > 0)?.peer.addresses[0]
    const { listen } = options
    const records = recordKinds({
      networkName: options.network ?? 'default',
      mostLifeMs: DEFAULTS.manifestLifeMs,
      toleranceMs: DEFAULTS.maxClockOffsetMs,
      now: () => clock.now(),
    })
    const network = this.#world.network({ peerId: this.peerId(agentId), records, ...(listen ? { listen } : {}) })
    const keys: KeyCheck = (raw) => this.#own.get(toHex(raw)) ?? this.#checkForeign(raw)
    const own: TestOpened = this.#options.opened?.(agentId, { clock, keys }) ?? { agentSigner: key }
    const nodes = [this.peerId(agentId)]
    this.#nodes.set(agentId, nodes)
    const peer = createPeerWith(
      { preset: 'none', ...(first ? { bootstrap: [first] } : {}), ...options, agentId },
      {
        clock,
        random,
        keys,
        loopUtilization: () => 0,
        ...(sendFilter ? { sendFilter } : {}),
        open: async ({ journal, tunables, network: networkName }) => ({
          key,
          rotation: this.#rotation(agentId, {
            ...own,
            networkName,
            lifeMs: tunables.instanceLifeMs,
            clock,
            random,
            nodes,
          }),
          epochs: this.#epoch(agentId),
          trust: this.#trust(),
          network,
          journal:
            journal === false
              ? createMemoryJournal({ limits: tunables })
              : this.disk(agentId).journal({ clock, limits: tunables }),
          neighbours: () => [],
          announce: () => () => undefined,
          ...own,
        }),
      },
    )
    peer.events.onAny((event) => this.#observe(agentId, event))
    prepare?.(peer)
    const started = peer.start()
    started.catch(() => undefined)
    const life = { peer, clock, started }
    this.#lives.set(agentId, life)
    return started
  }

  async crash(agentId: string): Promise<void> {
    const life = this.#lives.get(agentId)
    if (!life)
      throw new HermesError('INVALID_OPTION', {
        message: `crash: no peer ${agentId} runs`,
        details: { field: 'agentId' },
      })
    this.#lives.delete(agentId)
    life.clock.halt()
    this.#disks.get(agentId)?.crash()
    for (const node of this.#nodes.get(agentId) ?? []) this.faults.crash(node)
  }

  async advance(time: Duration): Promise<void> {
    await this.timeline.advance(time)
  }

  until<T>(goal: PromiseLike<T>, options?: { limitMs?: number }): Promise<T> {
    return this.timeline.runUntil(goal, options)
  }

  sleep(time: Duration, options?: { signal?: AbortSignal }): Promise<void> {
    return this.timeline.sleep(time, options)
  }

  calls(contract?: Pick<Capability, 'name'>): readonly ObservedCall[] {
    return contract ? this.#calls.filter(({ capability }) => capability === contract.name) : [...this.#calls]
  }

  onEvent(listener: (agentId: string, event: AnyEvent) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const stops = [...this.#lives.values()].map(({ peer }) => peer.stop())
    this.#lives.clear()
    await this.until(Promise.allSettled(stops))
  }

  #observe(agentId: string, event: AnyEvent): void {
    this.trace.add(`${this.timeline.now()} ${agentId} ${event.type}`)
    if (event.type === 'call.attempt') {
      if (this.#calls.length >= MOST_CALLS) this.#calls.shift()
      const { agentId: to, capability, messageId, attempt } = event
      this.#calls.push({ from: agentId, to, capability, messageId, attempt, at: this.timeline.now() })
    }
    for (const listener of this.#listeners) listener(agentId, event)
  }

  #key(agentId: string): SigningKey {
    let key = this.#keys.get(agentId)
    if (!key) {
      key = this.#options.key?.(agentId) ?? signingKey(this.random.fork(`key:${agentId}`).bytes(32))
      this.#keys.set(agentId, key)
      this.#own.set(toHex(key.publicKey.raw), key.publicKey)
    }
    return key
  }

  /** Its agent key, where it is at hand, signs each next one; that is all that is kept of it. */
  #rotation(agentId: string, life: RotatingLife): RotationSeam {
    const { agentSigner, certificates = [], networkName, lifeMs, clock, random, nodes } = life
    const issued = certificates.filter((_, index) => kindsOf(certificates)[index] !== 'instance')
    return {
      alone: agentSigner !== undefined,
      next: async (serial) => {
        if (!agentSigner) throw new HermesError('INVALID_OPTION', { message: 'the agent key is not at hand' })
        const key = signingKey(random.bytes(32))
        const certificate = signCertificate(
          {
            kind: 'instance',
            network: networkName,
            agent_id: agentId,
            instance_key: key.publicKey.raw,
            serial,
            not_before: clock.now(),
            not_after: clock.now() + lifeMs,
          },
          agentSigner,
        )
        const peerId = peerIdOf(key.publicKey.raw)
        nodes.push(peerId)
        return { key, certificates: [...issued, certificate], network: this.#world.network({ peerId }) }
      },
    }
  }

  #epoch(agentId: string): EpochStore {
    let store = this.#epochs.get(agentId)
    if (!store) {
      store = memoryEpochStore()
      this.#epochs.set(agentId, store)
    }
    return store
  }

  /** Everyone who has ever been in this network, and nobody else. */
  #trust() {
    const listed = () =>
      allowList(
        [...this.#keys].map(
          ([
            agent_id,
            {
              publicKey: { fingerprint },
            },
          ]) => ({
            agent_id,
            fingerprint,
            ...this.#options.members?.(agent_id),
          }),
        ),
      )
    let count = this.#keys.size
    let list = listed()
    const current = () => {
      if (count !== this.#keys.size) {
        count = this.#keys.size
        list = listed()
      }
      return list
    }
    return {
      judge: (claim: Parameters<ReturnType<typeof allowList>['judge']>[0]) => current().judge(claim),
      known: (agentId: string) => current().known(agentId),
      membership: (agentId: string) => current().membership?.(agentId),
      describe: () => 'admitted: the agents of this test network',
    }
  }
}
