import { type Capability, HermesError, LIMITS } from '@hermes-peer/protocol'
import type { ReceivedEvent } from './api.ts'
import { createAskManifest, createBuiltIns } from './built-ins.ts'
import { type Caller, createCaller } from './calls/caller.ts'
import { drain } from './calls/drain.ts'
import type { Provided } from './calls/job.ts'
import { createPending } from './calls/pending.ts'
import { type ContextRuntime, createContextRuntime } from './calls/pull.ts'
import { createResponder } from './calls/responder.ts'
import { createRetryBudget } from './calls/retry-budget.ts'
import { createServer, type Server } from './calls/server.ts'
import { createSessionRuntime, type SessionRuntime } from './calls/session.ts'
import { createSlots } from './calls/slots.ts'
import { createStoredEvents } from './calls/stored-events.ts'
import { createStreaming, type Streaming } from './calls/streaming.ts'
import { createAskRuntime } from './calls/system.ts'
import { createTaskProvider, type TaskProvider } from './calls/tasks/provider.ts'
import { createTasks, type Tasks } from './calls/tasks/tasks.ts'
import { createBroadcasts } from './delivery/broadcasts.ts'
import { createDedup } from './delivery/dedup.ts'
import { hearHeartbeat } from './delivery/heartbeat.ts'
import { createInbox, type Inbox } from './delivery/inbox.ts'
import { createOutbox, type Outbox } from './delivery/outbox.ts'
import { createDirectory, type Directory } from './directory/directory.ts'
import { createPresenceBeacon, type PresenceBeacon } from './directory/presence.ts'
import { createSources } from './directory/sources/sources.ts'
import { createEndorsing, type Endorsing } from './endorsing.ts'
import { createForwarding, type Forwarding } from './forwarding/forwarding.ts'
import { createIdentityRuntime, type IdentityRuntime } from './identity-runtime.ts'
import { joinWays } from './join-ways.ts'
import { createKeeper } from './link/keeper.ts'
import { createLinks, type Links } from './link/links.ts'
import { createReconnector } from './link/reconnect.ts'
import { linkEvents } from './link-events.ts'
import { createOwnManifest } from './manifest/own-manifest.ts'
import { detached } from './network/detached.ts'
import type { Network } from './network/network.ts'
import { networkEvents } from './network-events.ts'
import type { Settings } from './options.ts'
import type { Outside } from './outside.ts'
import { ownState } from './own-state.ts'
import type { RunningPolicy } from './policy/open.ts'
import { createRotation, type Rotation } from './rotation.ts'
import { createBreaker } from './routing/breaker.ts'
import { createIntents } from './routing/intent/intents.ts'
import { createMeasurements } from './routing/measure.ts'
import { createRouter, type Router } from './routing/router.ts'
import type { Opened, Seams } from './seams.ts'
import { sweepEvery } from './sweep.ts'
import type { Ledger } from './telemetry/balance.ts'
import type { Telemetry } from './telemetry/events.ts'
import { createTopics, handOnStored, receiveEvents } from './topics.ts'

export interface RuntimeOptions {
  readonly settings: Settings
  readonly seams: Seams
  readonly opened: Opened
  readonly policy: RunningPolicy
  readonly telemetry: Telemetry
  readonly ledger: Ledger
  readonly provided: ReadonlyMap<string, { contract: Capability; handler: Provided['handler'] }>
  /** Hands an event to the user's listeners. */
  deliver(event: ReceivedEvent): void
  readonly outside: Outside
}

/** All stages of one started peer, put together. */
export interface Runtime {
  readonly network: Network
  readonly fingerprint: string
  readonly links: Links
  readonly outbox: Outbox
  readonly directory: Directory
  readonly router: Router
  readonly server: Server
  readonly caller: Caller
  readonly tasks: Tasks
  readonly sessions: SessionRuntime
  readonly contexts: ContextRuntime
  readonly policy: RunningPolicy
  readonly identity: IdentityRuntime
  readonly rotation: Rotation
  readonly endorsing: Endorsing
  start(): Promise<void>
  stop(options: { drainMs: number; hurry: AbortSignal }): Promise<void>
  /** A capability was added after the start. */
  provide(contract: Capability, handler: Provided['handler']): void
  joinTopic(topic: string): () => void
}

export function createRuntime(options: RuntimeOptions): Runtime {
  const { settings, seams, opened, policy, telemetry, ledger, provided, deliver } = options
  const { agentId, network: networkName, tunables } = settings
  const { clock, random } = seams
  const common = { clock, random, tunables, telemetry }
  const { trust, journal } = opened
  const identity: IdentityRuntime = createIdentityRuntime({
    settings,
    seams,
    opened,
    firstNetwork: detached(opened.network, options.outside),
    telemetry,
    stages: () => ({ links, directory, streaming, ask, fallSilent }),
  })
  const { network, identities, key } = identity
  const epoch = opened.epochs.next(clock.now())
  const maxEnvelopeBytes = LIMITS.envelope

  let announcing = true
  const fallSilent = ({ message }: HermesError): void => {
    if (!announcing) return
    announcing = false
    beacon.stop()
    reconnector.stop()
    telemetry.emit('peer.notice', { text: `${message}; this one stops announcing itself` })
  }

  const dedup = createDedup({
    now: () => clock.now(),
    idsPerSender: tunables.dedupIdsPerSender,
    bytesPerSender: tunables.dedupBytesPerSender,
    idsPerNode: tunables.dedupIdsPerNode,
  })
  const pending = createPending()
  const measurements = createMeasurements({ tunables, clock })
  const breaker = createBreaker({ clock, tunables, telemetry, closed: (...pair) => measurements.forget(...pair) })
  // Late binding: the stages know each other only through what is handed to them here.
  let outbox: Outbox
  let inbox: Inbox

  const links: Links = createLinks({
    network,
    own: network.ownerOf,
    identities,
    ...common,
    perAddress: settings.preset !== 'local',
    self: {
      agentId,
      key,
      network: networkName,
      epoch,
      revocations: identity.revocations.digest,
      limits: { max_envelope_bytes: maxEnvelopeBytes, max_in_flight: tunables.inFlightPerPeer },
      manifestDigest: () => manifest.digest,
      nextSequence: (other) => outbox.nextSequence(other),
      seenEpoch: (other) => inbox.seenEpoch(other),
    },
    events: linkEvents(() => ({
      links,
      outbox,
      inbox,
      pending,
      server,
      forwarding,
      streaming,
      sessions: sessions.table,
      directory,
      beacon,
      tasks,
      keeper,
      reconnector,
      identity,
      clock,
      tunables,
    })),
  })

  outbox = createOutbox({
    agentId,
    network: networkName,
    epoch,
    key: () => network.current.key,
    links,
    ...common,
    maxEnvelopeBytes,
    sendFilter: seams.sendFilter,
    unconfirmed(link, leaf, reason) {
      // With the last link of an agent everything that waits for it has ended already.
      if (!links.has(link.remote.agentId) || reason.code === 'PEER_RESTARTED') return
      pending.find(leaf)?.lost(reason)
      forwarding.unconfirmed(leaf, reason)
    },
  })
  const ask = createAskRuntime({ outbox, pending, clock, random })
  const contexts = createContextRuntime({ agentId, clock, random, tunables, ask, directory: () => directory })
  const sessions = createSessionRuntime({ clock, tunables, telemetry, links, ask })
  const capabilities = (): string[] => server.contracts().map(({ name }) => name)
  const sources = createSources({ settings, network, ...common, capabilities })
  const directory: Directory = createDirectory({
    agentId,
    ownKey: key,
    epoch,
    networkName,
    sources: sources.all,
    health: sources.health,
    links,
    identities,
    ...common,
    askManifest: createAskManifest({ ask, links, keys: () => forwarding.keys, tunables }),
    newcomer: () => beacon.introduce(),
    duplicate: fallSilent,
  })
  const responder = createResponder({
    links,
    outbox,
    dedup,
    random,
    telemetry,
    maxEnvelopeBytes,
    large: () => streaming.large,
  })
  const taskProvider: TaskProvider = createTaskProvider({
    agentId,
    journal,
    dedup,
    responder,
    ...common,
    policy: policy.serve,
    forwarding: () => forwarding,
    pull: contexts.pull,
    provided: (name) => server.provided(name),
  })
  const storedEvents = createStoredEvents({
    journal,
    responder,
    ...common,
    deliver: handOnStored({ telemetry, deliver }),
  })
  const builtIns = createBuiltIns({
    agentId,
    epoch,
    ...common,
    dedup,
    tasks: taskProvider,
    sessions,
    contexts,
    revocations: identity.builtIn,
    own: () => manifest,
    keys: () => forwarding.keys,
  })
  const forwarding: Forwarding = createForwarding({
    agentId,
    networkName,
    ownKeys: () => network.all.map((instance) => instance.key.publicKey),
    identities,
    links,
    outbox,
    dedup,
    directory,
    pending,
    ask,
    ...common,
    maxEnvelopeBytes,
    handedTasks: taskProvider.handed,
    policy: policy.call,
    rank: (need, how) => router.rank(need, how),
  })
  const server = createServer({
    agentId,
    forwarding,
    sessions: sessions.table,
    pull: contexts.pull,
    links,
    outbox,
    dedup,
    ...common,
    builtIns,
    maxEnvelopeBytes,
    submitted: (incoming) => taskProvider.submitted(incoming),
    large: () => streaming.large,
    storedEvents,
    policy: policy.serve,
    event: receiveEvents({ telemetry, deliver }),
  })
  for (const { contract, handler } of provided.values()) server.provide(contract, handler)

  const intents = createIntents({ embed: settings.embed, clock, tunables, telemetry })
  const endorsing = createEndorsing(settings, seams, opened, identity.revocations.revoked)
  const { endorsers } = endorsing
  const known = { agentId, directory, measurements, breaker, intents, endorsers, policy: policy.call }
  const router = createRouter({ ...known, ...common })
  const caller = createCaller({
    links,
    outbox,
    pending,
    directory,
    router,
    measurements,
    breaker,
    ...common,
    ledger,
    ask,
    budget: createRetryBudget({ size: tunables.retryBudget, refill: tunables.retryRefill }),
    stream: (state, link, reader) => streaming.attempt(state, link, reader),
    large: () => streaming.large,
    slots: createSlots({
      perNode: tunables.inFlightPerNode,
      mostWaiting: tunables.outboxPerPeer,
      clock,
      ageMs: tunables.priorityAgeMs,
    }),
  })
  const tasks = createTasks({
    journal,
    outbox,
    pending,
    links,
    router,
    policy: policy.call,
    ledger,
    ask,
    ...common,
    reach: (other, signal) => directory.reach(other, signal),
  })
  inbox = createInbox({
    agentId,
    network: networkName,
    epoch,
    ...common,
    dedup,
    foreign: forwarding.foreign,
    events: {
      admitted: (incoming) => server.admitted(incoming),
      duplicate: (incoming, record) => server.duplicate(incoming, record),
      resubmitted: (incoming) => taskProvider.joined(incoming),
      cancel: (incoming) => server.cancel(incoming),
      refused: (incoming, error) => server.refused(incoming, error),
      answer(incoming) {
        if (!pending.answer(incoming)) {
          telemetry.emit('answer.late', { from: incoming.from, inReplyTo: incoming.header.in_reply_to ?? '' })
        }
      },
      heartbeat: hearHeartbeat({ clock, tunables, telemetry, answer: (link) => outbox.heartbeat(link, false) }),
    },
  })

  const receiveBroadcast = createBroadcasts({ network: networkName, clock, tunables, telemetry, dedup })
  const streamed = { links, network, own: network.ownerOf, outbox, inbox, dedup, pending, server, ...common }
  const streaming: Streaming = createStreaming(streamed)
  const keeper = createKeeper({
    links,
    ...common,
    pending: (other) => pending.count(other) + streaming.count(other) > 0 || forwarding.awaits(other),
    beat: (link, reply) => outbox.heartbeat(link, reply),
  })
  const reconnector = createReconnector({
    clock,
    random,
    tunables,
    async attempt(name) {
      if (name.startsWith('/')) await joinThrough(name)
      else if (directory.get(name)) await directory.reach(name)
    },
    wanted: (name) => name.startsWith('/') || pending.count(name) > 0,
    waiting: (name, inMs, failures) => telemetry.emit('link.reconnect', { agentId: name, inMs, failures }),
  })

  const manifest = createOwnManifest({
    agentId,
    network: networkName,
    description: settings.description,
    key,
    own: () => network.current,
    clock,
    tunables,
    epoch,
    contracts: () => server.contracts(),
    endorsements: settings.endorsements,
  })
  const beacon: PresenceBeacon = createPresenceBeacon({
    agentId,
    networkName,
    epoch,
    key,
    instance: () => network.current,
    identities,
    network,
    ...common,
    own: () => ownState({ server, busy: seams.loopUtilization(), manifestSerial: manifest.serial }),
    heard: (report) => directory.heard(report),
  })

  const rotation = createRotation({
    ...{ agentId, key, opened, network, links, directory, streaming, manifest, beacon, outside: options.outside },
    ...common,
    announced: () => {
      sources.registrar.changed()
      withdraw = opened.announce(network.addresses())
    },
  })

  const joinThrough = async (address: string): Promise<void> => {
    await links.connect({ addresses: [address], chosen: true })
  }

  const swept = [dedup, taskProvider, tasks, storedEvents, contexts.store]
  const stopSweeping = sweepEvery(clock, tunables.presenceMs, swept)
  let [withdraw, readdressed, stopping] = [(): void => undefined, (): void => undefined, false]

  return {
    network,
    fingerprint: key.fingerprint,
    links,
    outbox,
    directory,
    router,
    server,
    caller,
    tasks,
    sessions,
    contexts,
    policy,
    identity,
    rotation,
    endorsing,

    async start() {
      await sources.open()
      await journal.open()
      await identity.restore()
      await taskProvider.start()
      await storedEvents.load()
      network.observe(networkEvents({ network, links, telemetry, readdressed: () => readdressed() }))
      links.start()
      streaming.start()
      await network.start()
      keeper.start()
      directory.start()
      beacon.start()
      identity.start()
      rotation.start()
      sources.registrar.start()
      readdressed = () => {
        sources.registrar.changed()
        void beacon.announce()
      }
      withdraw = opened.announce(network.addresses())
      const absent = (way: string): void => void (stopping || reconnector.begin(way, false))
      await joinWays({ settings, opened, network, random, join: joinThrough, absent })
      await tasks.start()
      storedEvents.handOn()
      telemetry.emit('peer.started', { agentId, peerId: network.peerId, addresses: network.addresses() })
      telemetry.emit('peer.notice', { text: trust.describe() })
      policy.start()
    },

    async stop({ drainMs, hurry }) {
      stopping = true
      policy.stop()
      withdraw()
      const withdrawn = sources.registrar.withdraw()
      const announce = () => void beacon.announce('draining').catch(() => undefined)
      const what = { agentId, server, tasks: taskProvider, streaming, caller, ...common }
      const aborted = await drain({ ...what, drainMs, hurry, announce })
      await beacon.announce('leaving').catch(() => undefined)
      beacon.stop()
      const reason = new HermesError('STOPPED', { message: `${agentId} has been stopped` })
      caller.stop(reason)
      streaming.stop(reason)
      tasks.stop(reason)
      taskProvider.stop(reason)
      forwarding.stop()
      sessions.table.stop(reason)
      reconnector.stop()
      keeper.stop()
      identity.stop()
      rotation.stop()
      directory.stop()
      outbox.flush()
      links.stop(reason)
      inbox.close()
      stopSweeping()
      manifest.stop()
      await withdrawn.then(() => sources.close())
      await network.stop().finally(() => journal.close())
      telemetry.emit('peer.stopped', { agentId, aborted })
    },

    provide(contract, handler) {
      server.provide(contract, handler)
      taskProvider.capabilityCame(contract.name)
      manifest.renew()
      sources.registrar.changed()
      void beacon.announce()
    },

    joinTopic: createTopics({
      networkName,
      network,
      receiveBroadcast,
      directory,
      telemetry,
      policy: policy.serve,
      deliver,
    }),
  }
}
