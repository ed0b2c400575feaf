import {
  broadcastTopic,
  type Capability,
  decodePayload,
  deepFreeze,
  fromBase64url,
  HermesError,
  isHermesError,
  LIMITS,
  type PublicKey,
  providerCid,
  publicKey,
  readEventPayload,
  readHeartbeatPayload,
  toBase64url,
  toHex,
} from '@hermes-peer/protocol'
import { LRUCache } from 'lru-cache'
import type { ReceivedEvent } from './api.ts'
import { type Caller, createCaller } from './calls/caller.ts'
import type { Provided } from './calls/job.ts'
import { outcomeBuiltIn } from './calls/outcome.ts'
import { createPending } from './calls/pending.ts'
import { createRetryBudget } from './calls/retry-budget.ts'
import { createServer, type Server } from './calls/server.ts'
import { createSlots } from './calls/slots.ts'
import { createStreaming, type Streaming } from './calls/streaming.ts'
import { createAskRuntime } from './calls/system.ts'
import type { BuiltIn } from './calls/unqueued.ts'
import { createDedup } from './delivery/dedup.ts'
import { createInbox, type Inbox } from './delivery/inbox.ts'
import { createOutbox, type Outbox } from './delivery/outbox.ts'
import { createDirectory, type Directory } from './directory/directory.ts'
import { createPresenceBeacon, type PresenceBeacon } from './directory/presence.ts'
import { createKeeper } from './link/keeper.ts'
import { createLinks, type Links } from './link/links.ts'
import { createReconnector } from './link/reconnect.ts'
import type { Network } from './network/network.ts'
import type { Settings } from './options.ts'
import { createOwnManifest } from './own-manifest.ts'
import { createMeasurements } from './routing/measure.ts'
import { createRouter, type Router } from './routing/router.ts'
import type { Opened, Seams } from './seams.ts'
import type { Ledger } from './telemetry/balance.ts'
import type { Telemetry } from './telemetry/events.ts'

export interface RuntimeOptions {
  readonly settings: Settings
  readonly seams: Seams
  readonly opened: Opened
  readonly telemetry: Telemetry
  readonly ledger: Ledger
  readonly provided: ReadonlyMap<string, { contract: Capability; handler: Provided['handler'] }>
  /** Hands an event to the user's listeners. */
  deliver(event: ReceivedEvent): void
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
  start(): Promise<void>
  stop(): Promise<void>
  /** A capability was added after the start. */
  provide(contract: Capability, handler: Provided['handler']): void
  joinTopic(topic: string): () => void
}

/** Public keys remembered as checked: the curve check costs a millisecond. */
const MOST_KEYS = 10_000

export function createRuntime(options: RuntimeOptions): Runtime {
  const { settings, seams, opened, telemetry, ledger, provided, deliver } = options
  const { agentId, network: networkName, tunables } = settings
  const { clock, random } = seams
  const { key, trust, network } = opened
  const epoch = opened.epochs.next(clock.now())
  const maxEnvelopeBytes = LIMITS.envelope

  const checked = new LRUCache<string, PublicKey>({ max: MOST_KEYS })
  const keys = (raw: Uint8Array): PublicKey => {
    const name = toHex(raw)
    let found = checked.get(name)
    if (!found) {
      found = publicKey(raw)
      checked.set(name, found)
    }
    return found
  }

  let announcing = true
  const duplicate = (error: HermesError): void => {
    if (!announcing) return
    announcing = false
    beacon.stop()
    reconnector.stop()
    telemetry.emit('peer.notice', { text: `${error.message}; this one stops announcing itself` })
  }

  const dedup = createDedup({
    now: () => clock.now(),
    idsPerSender: tunables.dedupIdsPerSender,
    bytesPerSender: tunables.dedupBytesPerSender,
    idsPerNode: tunables.dedupIdsPerNode,
  })
  const pending = createPending()
  const measurements = createMeasurements({ tunables })
  // Late binding: the stages know each other only through what is handed to them here.
  let outbox: Outbox
  let inbox: Inbox

  const links: Links = createLinks({
    network,
    key,
    keys,
    trust,
    clock,
    random,
    tunables,
    telemetry,
    perAddress: settings.preset !== 'local',
    self: {
      agentId,
      network: networkName,
      epoch,
      limits: { max_envelope_bytes: maxEnvelopeBytes, max_in_flight: tunables.inFlightPerPeer },
      manifestDigest: () => manifest.digest,
      nextSequence: (other) => outbox.nextSequence(other),
      seenEpoch: (other) => inbox.seenEpoch(other),
    },
    events: {
      up(link) {
        let others = 0
        for (const other of links.all()) if (other.remote.agentId === link.remote.agentId) others++
        inbox.linked(link, others === 1)
        reconnector.end(link.remote.agentId)
        directory.linked(link)
      },
      frame(link, body) {
        inbox.receive(link, body)
        keeper.received(link)
      },
      unblocked: (link) => outbox.unblocked(link),
      down(link, reason, last) {
        outbox.lost(link, reason)
        const { agentId: other, epoch: life } = link.remote
        if (reason.code === 'PEER_RESTARTED') {
          // Its new link is there already: this is no disconnect, but the end of everything between us and its former life.
          pending.disconnected(other, life, reason)
          server.callerRestarted(other, life)
        }
        if (last || reason.code === 'PEER_RESTARTED') streaming.lost(link, reason)
        if (!last) return
        pending.disconnected(other, life, reason)
        server.callerLost(other)
        const graceful = reason.code === 'STOPPED' || reason.details.orderly === true
        directory.unlinked(other, graceful)
        // The dialler comes back first: both at once would only make two links of which one is closed again.
        if (!graceful && directory.get(other) && link.direction === 'outbound') {
          reconnector.begin(other, clock.monotonic() - link.openedAt > tunables.reconnectStableMs)
        }
      },
      duplicate,
    },
  })

  outbox = createOutbox({
    agentId,
    network: networkName,
    epoch,
    key,
    links,
    clock,
    random,
    tunables,
    telemetry,
    maxEnvelopeBytes,
    sendFilter: seams.sendFilter,
  })
  const ask = createAskRuntime({ outbox, pending, clock, random })
  const directory: Directory = createDirectory({
    agentId,
    ownKey: key.publicKey,
    epoch,
    networkName,
    network,
    links,
    trust,
    clock,
    tunables,
    telemetry,
    async askManifest(other, signal) {
      const link = links.get(other)
      if (!link) throw new HermesError('PEER_UNREACHABLE', { message: `no link to ${other}` })
      const output = (await ask(link, 'hermes.manifest', {}, { timeoutMs: tunables.manifestTimeoutMs, signal })) as {
        manifest?: unknown
      }
      const document = typeof output?.manifest === 'string' ? fromBase64url(output.manifest) : undefined
      if (!document) throw new HermesError('MALFORMED', { message: `${other} gave no manifest` })
      return document
    },
    newcomer: () => beacon.introduce(),
    duplicate,
  })
  const builtIns = new Map<string, BuiltIn>([
    ['hermes.manifest', () => ({ manifest: toBase64url(manifest.document) })],
    [
      'hermes.outcome',
      outcomeBuiltIn({
        dedup,
        epoch,
        now: () => clock.now(),
        mostAheadMs: 10 * tunables.callTimeoutMs + tunables.clockToleranceMs,
      }),
    ],
  ])
  const server = createServer({
    agentId,
    links,
    outbox,
    dedup,
    clock,
    random,
    tunables,
    telemetry,
    builtIns,
    maxEnvelopeBytes,
    large: () => streaming.large,
    event(incoming, data) {
      const { header, from } = incoming
      telemetry.emit('event.received', { ...idsOf(header), from, name: header.target_capability as string })
      deliver({
        kind: 'event',
        name: header.target_capability as string,
        sender: from,
        data,
        messageId: header.message_id,
        traceId: header.trace_id,
      })
    },
  })
  for (const { contract, handler } of provided.values()) server.provide(contract, handler)

  const router = createRouter({ agentId, directory, measurements, clock, random, tunables })
  const caller = createCaller({
    links,
    outbox,
    pending,
    directory,
    router,
    measurements,
    clock,
    random,
    tunables,
    telemetry,
    ledger,
    ask,
    budget: createRetryBudget({ size: tunables.retryBudget, refill: tunables.retryRefill }),
    stream: (state, link, reader) => streaming.attempt(state, link, reader),
    large: () => streaming.large,
    slots: createSlots({ perNode: tunables.inFlightPerNode, mostWaiting: tunables.outboxPerPeer }),
  })
  inbox = createInbox({
    agentId,
    network: networkName,
    epoch,
    clock,
    tunables,
    telemetry,
    dedup,
    keyOf: (other) => directory.keyOf(other),
    events: {
      admitted: (incoming) => server.admitted(incoming),
      duplicate: (incoming, record) => server.duplicate(incoming, record),
      cancel: (incoming) => server.cancel(incoming),
      refused: (incoming, error) => server.refused(incoming, error),
      answer(incoming) {
        const { message_type: type } = incoming.header
        // An ack answers what asks to be stored, an end belongs to a stream: neither is the answer of a request.
        if ((type !== 'response' && type !== 'error') || !pending.answer(incoming)) {
          telemetry.emit('answer.late', { from: incoming.from, inReplyTo: incoming.header.in_reply_to ?? '' })
        }
      },
      heartbeat({ header, payload, link, receivedAt }) {
        const beat = readHeartbeatPayload(decodePayload(header.content_type, payload))
        link.receipt(beat.received)
        // One way only: the time on the wire is part of it, which the tolerance covers.
        const offsetMs = beat.time - clock.now() + Math.round(clock.monotonic() - receivedAt)
        // No peer may move the clock that its envelopes are judged by so far; and a jump of one's own wall clock is no reason to
        // give up a link that works.
        if (Math.abs(offsetMs) > tunables.maxClockOffsetMs) {
          if (telemetry.wants('link.clock'))
            telemetry.emit('link.clock', { agentId: link.remote.agentId, linkId: link.id, offsetMs })
          return
        }
        link.offsetMs = offsetMs
        if (beat.reply) {
          link.sentReceipt()
          outbox.heartbeat(link, false)
        }
      },
    },
  })

  const streamed = { links, network, outbox, inbox, dedup, pending, server, clock, random, tunables, telemetry }
  const streaming: Streaming = createStreaming(streamed)
  const keeper = createKeeper({
    links,
    clock,
    tunables,
    telemetry,
    pending: (other) => pending.count(other) + streaming.count(other) > 0,
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
    clock,
    tunables,
    epoch,
    contracts: () => server.contracts(),
  })
  const beacon: PresenceBeacon = createPresenceBeacon({
    agentId,
    networkName,
    epoch,
    key,
    keys,
    network,
    clock,
    random,
    tunables,
    telemetry,
    own() {
      const load = server.load()
      const busy = seams.loopUtilization()
      return {
        capabilities: server.contracts().map(({ name }) => name),
        load: 100 * Math.max(load.fullness, busy),
        queueDepth: load.waiting,
        success: server.success(),
        manifestSerial: manifest.serial,
      }
    },
    heard: (report) => directory.heard(report),
  })

  const joinThrough = async (address: string): Promise<void> => {
    await links.connect({ addresses: [address], chosen: true })
  }

  const publishCapability = (contract: Capability): void => {
    const stop = new AbortController()
    const timer = clock.after(tunables.lookupTimeoutMs, () => stop.abort())
    network
      .provide(providerCid(networkName, contract.name), { signal: stop.signal })
      .catch(() => undefined)
      .finally(() => clock.clear(timer))
  }

  let sweeping = clock.after(tunables.presenceMs, function sweep(): void {
    dedup.sweep()
    sweeping = clock.after(tunables.presenceMs, sweep)
  })
  let withdraw = (): void => undefined
  let stopping = false

  return {
    network,
    fingerprint: key.publicKey.fingerprint,
    links,
    outbox,
    directory,
    router,
    server,
    caller,

    async start() {
      network.observe({})
      links.start()
      streaming.start()
      await network.start()
      keeper.start()
      directory.start()
      beacon.start()
      for (const contract of server.contracts()) publishCapability(contract)
      const ways = [...new Set([...settings.bootstrap, ...opened.neighbours()])].filter(
        (way) => !way.includes(network.peerId),
      )
      withdraw = opened.announce(network.addresses())
      await Promise.all(
        ways.map((way) =>
          joinThrough(way).catch((error: unknown) => {
            if (isHermesError(error) && error.code === 'INVALID_ADDRESS') {
              throw error.with({
                message: `bootstrap: ${error.message}`,
                details: { ...error.details, field: 'bootstrap' },
              })
            }
            if (!stopping && settings.bootstrap.includes(way)) reconnector.begin(way, false)
          }),
        ),
      )
      telemetry.emit('peer.started', { agentId, peerId: network.peerId, addresses: network.addresses() })
      telemetry.emit('peer.notice', { text: trust.describe() })
    },

    async stop() {
      stopping = true
      withdraw()
      server.drain()
      await beacon.announce('leaving').catch(() => undefined)
      beacon.stop()
      const reason = new HermesError('STOPPED', { message: `${agentId} has been stopped` })
      caller.stop(reason)
      streaming.stop(reason)
      server.stop(new HermesError('CALLER_GONE', { message: `${agentId} is stopping` }))
      reconnector.stop()
      keeper.stop()
      directory.stop()
      links.stop(reason)
      inbox.close()
      clock.clear(sweeping)
      await network.stop()
      telemetry.emit('peer.stopped', { agentId })
    },

    provide(contract, handler) {
      server.provide(contract, handler)
      manifest.renew()
      publishCapability(contract)
      void beacon.announce()
    },

    joinTopic(topic) {
      return network.subscribe(broadcastTopic(networkName, topic), ({ data }) => {
        try {
          if (data.length > LIMITS.broadcast) throw new HermesError('LIMIT_EXCEEDED')
          const { header, payload, from, contentType } = inbox.receiveBroadcast(topic, data, (sender, fingerprint) => {
            const entry = directory.get(sender)
            return entry?.key.fingerprint === fingerprint ? entry.key : undefined
          })
          const event = readEventPayload(decodePayload(contentType, payload))
          telemetry.emit('event.received', { ...idsOf(header), from, name: topic })
          deliver({
            kind: 'topic',
            name: topic,
            sender: from,
            data: deepFreeze(event.data),
            messageId: header.message_id,
            traceId: header.trace_id,
          })
          return 'accept'
        } catch (error) {
          const refusal = HermesError.from(error)
          telemetry.emit('envelope.refused', { code: refusal.code, reason: refusal.message, from: `topic:${topic}` })
          return refusal.code === 'BAD_SIGNATURE' || refusal.code === 'MALFORMED' ? 'reject' : 'ignore'
        }
      })
    },
  }
}

function idsOf(header: { message_id: string; correlation_id: string | undefined; trace_id: string }) {
  return { messageId: header.message_id, correlationId: header.correlation_id, traceId: header.trace_id }
}
