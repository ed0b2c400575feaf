import { fingerprintOf, HermesError, type Manifest, openManifest, type PublicKey } from '@hermes-peer/protocol'
import { LRUCache } from 'lru-cache'
import type { WatchChange } from '../api.ts'
import type { Clock, Timer } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Identities, Identity, Meeting } from '../identity/identities.ts'
import type { Link } from '../link/link.ts'
import type { Links } from '../link/links.ts'
import type { FoundPeer, Verdict } from '../network/network.ts'
import type { Query } from '../routing/query.ts'
import { withSignal } from '../signals.ts'
import type { Telemetry } from '../telemetry/events.ts'
import { adopt, type Entry, isSameAgent, newEntry, offered } from './entry.ts'
import { createLookups, demandAnswer, type LookupState } from './lookups.ts'
import { askAll, checkManifest, contentOf, deepFreezeManifest, hasExpired } from './manifests.ts'
import type { HeardReport } from './presence.ts'
import type { SourceHealth } from './sources/health.ts'
import type { DirectorySource } from './sources/source.ts'
import { createWatchers, matches, type Watchers } from './watchers.ts'

export type { Entry } from './entry.ts'

/** Who can do what: what links, presence and the sources (DHT, file, Redis) have told, by agent. */
export interface Directory {
  get(agentId: string): Entry | undefined
  all(): Iterable<Entry>
  /**
   * Agents that may serve a query, looked up in the sources when too little is known. Manifests that are not at hand are fetched, and
   * waited for only while no agent is described that could serve it, or if all of them are wanted (`complete`). Rejects with
   * `DIRECTORY_UNREACHABLE` when nobody usable is known, a source cannot be asked, and what it last said is too old.
   */
  find(query: Query, options: FindOptions): Promise<readonly Entry[]>
  /** What the last look-up of a capability came to. */
  lookup(capability: string): LookupState
  /**
   * A link to a known agent, dialled when there is none. A failed dial makes its addresses suspect: they are looked up again once
   * within the call. Rejects with `PEER_UNREACHABLE` or a code of the handshake.
   */
  reach(agentId: string, signal?: AbortSignal): Promise<Link>
  /** Its manifest, asked over the link when the one at hand is not the one it spoke of. */
  manifest(agentId: string, signal?: AbortSignal): Promise<Manifest>
  /** The admitted keys of an agent, the newest first: two while it changes from one to the next. */
  keysOf(agentId: string): readonly PublicKey[]
  watch(query: Query, report: (change: WatchChange) => void): () => void
  heard(report: HeardReport): Verdict
  linked(link: Link): void
  /** The last link of an agent is gone. */
  unlinked(agentId: string, graceful: boolean): void
  /** Strikes off those who may not speak any more. */
  recheck(agentId: string): void
  start(): void
  stop(): void
}

export interface FindOptions {
  readonly signal: AbortSignal
  /** Asks the sources again, however fresh their last answer. */
  readonly fresh?: boolean
  readonly complete?: boolean
}

export interface DirectoryOptions {
  readonly agentId: string
  /** The agent key. */
  readonly ownKey: PublicKey
  readonly epoch: number
  readonly networkName: string
  readonly sources: readonly DirectorySource[]
  readonly health: SourceHealth
  readonly links: Links
  readonly identities: Identities
  readonly clock: Clock
  readonly tunables: Tunables
  readonly telemetry: Telemetry
  /** `hermes.manifest` over a link: the signed document. */
  askManifest(agentId: string, signal: AbortSignal | undefined): Promise<Uint8Array>
  /** Somebody was heard of for the first time. */
  newcomer(): void
  /** Another process runs under our key with a later life. */
  duplicate(error: HermesError): void
}

export function createDirectory(options: DirectoryOptions): Directory {
  return new AgentDirectory(options)
}

/** How long an agent that is offline stays listed. */
const FORGET_MS = 30 * 60 * 1000

const IN_GOSSIP: Meeting = { met: 'gossip', chosen: false }

class AgentDirectory implements Directory {
  readonly #options: DirectoryOptions
  /** At most `directoryAgents`; the longest silent one goes first. */
  readonly #entries = new Map<string, Entry>()
  readonly #watchers: Watchers
  /** Last report of agents that have left: gossip does not keep order, and an older one must not bring them back. */
  readonly #departed = new LRUCache<string, { epoch: number; counter: number }>({
    maxSize: 1000,
    sizeCalculation: () => 1,
  })
  /** Waits of `find` for somebody who offers a capability. */
  readonly #hopes = new Set<() => void>()
  readonly #manifests = new Map<string, Promise<Manifest>>()
  readonly #lookups
  #timer: Timer | undefined
  #tickedAt = 0

  constructor(options: DirectoryOptions) {
    this.#options = options
    this.#watchers = createWatchers({ telemetry: options.telemetry, all: () => this.#entries.values() })
    this.#lookups = createLookups({
      clock: options.clock,
      tunables: options.tunables,
      telemetry: options.telemetry,
      sources: options.sources,
      health: options.health,
      meet: (peer, signal) => this.#meet(peer, signal),
    })
  }

  get(agentId: string): Entry | undefined {
    return this.#entries.get(agentId)
  }

  all(): Iterable<Entry> {
    return this.#entries.values()
  }

  keysOf(agentId: string): readonly PublicKey[] {
    const entry = this.#entries.get(agentId)
    if (!entry) return []
    const instances = entry.older ? [entry.identity, entry.older] : [entry.identity]
    return instances.filter((one) => !this.#objection(one)).map(({ signer }) => signer)
  }

  recheck(agentId: string): void {
    const entry = this.#entries.get(agentId)
    if (!entry) return
    if (entry.older && this.#objection(entry.older)) entry.older = undefined
    if (!this.#objection(entry.identity)) return
    this.#remove(entry, 'left')
  }

  #objection(identity: Identity): string | undefined {
    return this.#options.identities.objection(identity, IN_GOSSIP)
  }

  start(): void {
    this.#tickedAt = this.#options.clock.monotonic()
    this.#timer = this.#options.clock.after(this.#options.tunables.tickMs, () => this.#tick())
  }

  stop(): void {
    this.#options.clock.clear(this.#timer)
    this.#lookups.stop()
    this.#watchers.clear()
    this.#hopes.clear()
  }

  async find(query: Query, options: FindOptions): Promise<readonly Entry[]> {
    const { capability, agent } = query
    let found = this.#matching(query)
    if (capability) {
      const usable = found.some(({ status }) => status === 'online' || status === 'suspect')
      const lookup = this.#lookups.run(capability, options.fresh === true || !usable)
      if (!usable && lookup) {
        await this.#hope(query, lookup, options.signal)
        found = this.#matching(query)
      }
    }
    const known = agent === undefined ? undefined : this.#entries.get(agent)
    if (known && found.length === 0) return [known]
    if (capability) demandAnswer(capability, found, this.#lookups.state(capability))
    const undescribed = found.filter(({ manifest, status }) => !manifest && status !== 'offline')
    if (undescribed.length > 0) {
      const { clock, tunables } = this.#options
      const everybody = capability === undefined && agent === undefined
      const ask = (entry: Entry, signal: AbortSignal) => withSignal(this.manifest(entry.agentId), signal)
      const asked = askAll(undescribed, ask, { signal: options.signal, clock, tunables, hurried: everybody })
      // One that cannot be dialled must not hold up what another one can do.
      const able = found.some(({ manifest, status }) => manifest && (status === 'online' || status === 'suspect'))
      if (everybody || !able || options.complete) await asked
    }
    return found
  }

  lookup(capability: string): LookupState {
    return this.#lookups.state(capability)
  }

  async reach(agentId: string, signal?: AbortSignal): Promise<Link> {
    const link = this.#options.links.get(agentId)
    if (link) return link
    const entry = this.#entries.get(agentId)
    if (!entry)
      throw new HermesError('PEER_UNREACHABLE', {
        message: `no address of ${agentId} is known`,
        details: { tried: [] },
      })
    const dial = (addresses: readonly string[]) =>
      this.#options.links.connect({ agentId, peerId: entry.peerId, addresses }, signal)
    try {
      return await dial(entry.addresses)
    } catch (error) {
      if (signal?.aborted) throw HermesError.from(error)
      const tried = entry.addresses
      const renewed = await this.#renew(entry, signal)
      if (renewed.length > 0 && renewed.join() !== tried.join()) {
        try {
          return await dial(renewed)
        } catch (second) {
          if (signal?.aborted) throw HermesError.from(second)
        }
      }
      const existing = this.#options.links.get(agentId)
      if (existing) return existing
      this.#status(entry, 'offline')
      throw HermesError.from(error, 'PEER_UNREACHABLE')
    }
  }

  manifest(agentId: string, signal?: AbortSignal): Promise<Manifest> {
    const entry = this.#entries.get(agentId)
    if (entry?.manifest) return Promise.resolve(entry.manifest)
    return withSignal(this.#fetch(agentId), signal)
  }

  watch(query: Query, report: (change: WatchChange) => void): () => void {
    return this.#watchers.add(query, report)
  }

  heard({ presence, identity }: HeardReport): Verdict {
    const { agentId, ownKey, epoch, identities, links, clock, tunables } = this.#options
    const now = clock.monotonic()
    if (presence.agent_id === agentId) {
      if (identity.agentKey.fingerprint === ownKey.fingerprint && presence.epoch > epoch) {
        this.#options.duplicate(
          new HermesError('DUPLICATE_AGENT', {
            message: `a later life of ${agentId} (${presence.epoch}) runs with the same key at ${presence.addresses.join(', ')}`,
          }),
        )
      }
      return 'ignore'
    }
    const left = this.#departed.get(presence.agent_id)
    if (left && (presence.epoch < left.epoch || (presence.epoch === left.epoch && presence.counter <= left.counter)))
      return 'ignore'
    let entry = this.#entries.get(presence.agent_id)
    const same = entry !== undefined && isSameAgent(entry, identity)
    // Others may admit it: it travels on, but changes nothing here.
    if (same ? this.#objection(identity) : !identities.judge(identity, IN_GOSSIP).admitted) return 'accept'
    if (!entry || !same || identity.signer.fingerprint !== entry.key.fingerprint) {
      try {
        identities.proven(identity, IN_GOSSIP)
      } catch {
        return 'accept'
      }
      if (entry && same) {
        if (adopt(entry, identity) === 'older') return 'accept'
      } else {
        entry = this.#add(newEntry(identity, now))
        this.#options.newcomer()
      }
    }
    const older = presence.epoch < entry.epoch || (presence.epoch === entry.epoch && presence.counter <= entry.counter)
    if (older) return 'ignore'
    if (now - entry.reports.since > tunables.presenceWindowMs) entry.reports = { since: now, count: 0, changes: 0 }
    const news = presence.state !== (entry.status === 'draining' ? 'draining' : 'up') || presence.epoch > entry.epoch
    if (news) entry.reports.changes++
    else entry.reports.count++
    if (news ? entry.reports.changes > tunables.presenceChanges : entry.reports.count > tunables.presencePerWindow)
      return 'ignore'
    if (presence.epoch > entry.epoch) this.#options.newcomer()
    entry.epoch = presence.epoch
    entry.counter = presence.counter
    entry.heardAt = now
    entry.addresses = presence.addresses
    entry.load = presence.load
    entry.queueDepth = presence.queue_depth
    entry.success = presence.success_rate_15m
    if (presence.state === 'leaving') {
      this.#departed.set(presence.agent_id, { epoch: presence.epoch, counter: presence.counter })
      this.#remove(entry, 'left')
      return 'accept'
    }
    const before = offered(entry).join()
    const joining = entry.status !== 'online'
    const renewed = presence.manifest_serial > entry.manifestSerial
    entry.capabilities = presence.capabilities
    if (renewed) {
      entry.manifestSerial = presence.manifest_serial
      if (entry.manifest && entry.manifest.serial < presence.manifest_serial) {
        entry.manifest = undefined
        const wanted = this.#options.links.get(entry.agentId) ?? this.#watchers.name(entry.agentId)
        if (wanted) void this.#fetch(entry.agentId).catch(() => undefined)
      }
    }
    // Its link is that of a key that goes: a new one is made before that.
    const link = links.get(entry.agentId)
    if (link && link.remote.key.fingerprint !== entry.key.fingerprint) {
      const { agentId: other, peerId, addresses } = entry
      void links.connect({ agentId: other, peerId, addresses, renew: true }).catch(() => undefined)
    }
    this.#status(entry, presence.state === 'draining' ? 'draining' : 'online')
    if (!joining && before !== offered(entry).join() && entry.status === 'online') this.#report('changed', entry)
    return 'accept'
  }

  linked(link: Link): void {
    const { clock } = this.#options
    const { agentId, identity, peerId, address, manifestDigest, epoch } = link.remote
    let entry = this.#entries.get(agentId)
    if (!entry || !isSameAgent(entry, identity)) {
      entry = this.#add(newEntry(identity, clock.monotonic()))
      this.#options.newcomer()
    }
    const older = adopt(entry, identity) === 'older'
    entry.heardAt = clock.monotonic()
    if (epoch > entry.epoch) {
      entry.epoch = epoch
      entry.counter = -1
    }
    if (!older && link.direction === 'outbound' && entry.addresses.length === 0) {
      entry.addresses = [address.includes('/p2p/') ? address : `${address}/p2p/${peerId}`]
    }
    if (entry.manifestDigest !== manifestDigest) {
      entry.manifest = undefined
      entry.manifestDigest = manifestDigest
    }
    this.#status(entry, 'online')
    if (!entry.manifest) void this.#fetch(agentId).catch(() => undefined)
  }

  unlinked(agentId: string, graceful: boolean): void {
    const entry = this.#entries.get(agentId)
    // The transport is the first to know: out of the ranking until something is heard again.
    if (!entry) return
    // It said goodbye: no candidate any more, and whether it leaves or drains its report tells.
    if (graceful) entry.status = 'draining'
    else this.#status(entry, 'offline')
  }

  async #meet({ peerId, addresses }: FoundPeer, signal: AbortSignal): Promise<boolean> {
    try {
      const link = await this.#options.links.connect({ peerId, addresses }, signal)
      const entry = this.#entries.get(link.remote.agentId)
      if (entry && addresses.length > 0 && entry.status !== 'online') entry.addresses = addresses
      // Only this tells whether it offers what was looked for.
      await withSignal(this.manifest(link.remote.agentId), signal).catch(() => undefined)
      return true
    } catch {
      return false
    }
  }

  /** Addresses that a source has of an agent that could not be dialled. */
  async #renew(entry: Entry, signal: AbortSignal | undefined): Promise<readonly string[]> {
    const capability = offered(entry)[0]
    if (!capability) return []
    const found = await this.#lookups.locate(entry, capability, signal)
    if (found.length > 0) entry.addresses = found
    return entry.addresses
  }

  #fetch(agentId: string): Promise<Manifest> {
    const running = this.#manifests.get(agentId)
    if (running !== undefined) return running
    const fetching = this.#ask(agentId).finally(() => this.#manifests.delete(agentId))
    fetching.catch(() => undefined)
    this.#manifests.set(agentId, fetching)
    return fetching
  }

  async #ask(agentId: string): Promise<Manifest> {
    const told = this.#entries.get(agentId)?.manifestSerial ?? 0
    const link = await this.reach(agentId)
    const document = await this.#options.askManifest(agentId, undefined)
    const { agentKey } = link.remote.identity
    const manifest = openManifest(document, (shown) => this.#options.identities.read(shown).signer)
    if (fingerprintOf(manifest.key) !== agentKey.fingerprint) {
      throw new HermesError('IDENTITY_MISMATCH', { message: `${agentId} gave a manifest of another key` })
    }
    const { networkName, clock } = this.#options
    checkManifest(manifest, { agentId, networkName, now: clock.now() })
    const entry = this.#entries.get(agentId)
    if (entry && manifest.serial >= entry.lowestSerial) {
      const [offeredBefore, saidBefore] = [offered(entry).join(), entry.said]
      entry.manifest = deepFreezeManifest(manifest)
      entry.said = contentOf(manifest)
      entry.manifestSerial = Math.max(entry.manifestSerial, manifest.serial)
      entry.lowestSerial = manifest.serial
      const there = entry.status === 'online' || entry.status === 'suspect'
      const other = saidBefore !== undefined && saidBefore !== entry.said
      if (there && (other || offeredBefore !== offered(entry).join())) this.#report('changed', entry)
      this.#wake()
      // A newer one was spoken of while this one was on its way.
      if (entry.manifestSerial > Math.max(told, manifest.serial)) {
        entry.manifest = undefined
        return this.#ask(agentId)
      }
    }
    return manifest
  }

  #matching(query: Query): Entry[] {
    return [...this.#entries.values()].filter((entry) => matches(entry, query))
  }

  /** Waits until somebody usable is known, the look-up has ended, or the signal fires. */
  async #hope(query: Query, lookup: Promise<void>, signal: AbortSignal): Promise<void> {
    let wake = (): void => undefined
    const appeared = new Promise<void>((resolve) => {
      wake = () => {
        if (this.#matching(query).some(({ status }) => status === 'online')) resolve()
      }
      this.#hopes.add(wake)
    })
    try {
      await withSignal(Promise.race([lookup, appeared]), signal).catch(() => undefined)
    } finally {
      this.#hopes.delete(wake)
    }
  }

  #wake(): void {
    for (const hope of [...this.#hopes]) hope()
  }

  #add(entry: Entry): Entry {
    if (this.#entries.size >= this.#options.tunables.directoryAgents) {
      let silent: Entry | undefined
      for (const other of this.#entries.values()) if (!silent || other.heardAt < silent.heardAt) silent = other
      if (silent) this.#entries.delete(silent.agentId)
    }
    this.#entries.set(entry.agentId, entry)
    return entry
  }

  #remove(entry: Entry, why: 'left' | 'forgotten'): void {
    if (this.#entries.get(entry.agentId) !== entry) return
    this.#entries.delete(entry.agentId)
    if (why === 'left') this.#report('left', entry)
  }

  #status(entry: Entry, status: Entry['status']): void {
    if (entry.status === status) return
    const before = entry.status
    entry.status = status
    if (status === 'online') {
      this.#report(before === 'suspect' ? 'changed' : 'joined', entry)
      this.#wake()
    }
    if (status === 'suspect' || status === 'offline') this.#report(status, entry)
    if (status === 'draining') this.#report('changed', entry)
  }

  #report(type: WatchChange['type'], entry: Entry): void {
    const { telemetry } = this.#options
    const { agentId } = entry
    if (type === 'joined' || type === 'changed')
      telemetry.emit(`directory.${type}`, { agentId, capabilities: offered(entry) })
    else telemetry.emit(`directory.${type}`, { agentId })
    this.#watchers.tell(type, entry)
  }

  #tick(): void {
    const { clock, tunables, links } = this.#options
    const now = clock.monotonic()
    // After a stall of our own event loop nobody could have been heard.
    if (now - this.#tickedAt > tunables.tickMs + tunables.stallMs) {
      for (const entry of this.#entries.values()) entry.heardAt = now
    }
    this.#tickedAt = now
    for (const entry of [...this.#entries.values()]) {
      if (entry.manifest && hasExpired(entry.manifest, clock.now())) entry.manifest = undefined
      const silence = now - Math.max(entry.heardAt, links.get(entry.agentId)?.heardAt ?? 0)
      if (entry.status === 'offline' && silence > FORGET_MS) this.#remove(entry, 'forgotten')
      if (entry.status === 'offline') continue
      if (silence > tunables.presenceMs * tunables.presenceOffline) this.#status(entry, 'offline')
      else if (silence > tunables.presenceMs * tunables.presenceSuspect) this.#status(entry, 'suspect')
      else if (entry.status === 'suspect') this.#status(entry, 'online')
    }
    this.#timer = clock.after(tunables.tickMs, () => this.#tick())
  }
}
