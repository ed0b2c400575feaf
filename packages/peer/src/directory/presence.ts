import {
  fingerprintOf,
  HermesError,
  openPresence,
  type Presence,
  type PresenceState,
  type PublicKey,
  presenceTopic,
  type Shown,
  signPresence,
} from '@hermes-peer/protocol'
import type { Clock, Timer } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Identities, Identity } from '../identity/identities.ts'
import type { OwnInstance } from '../identity/own-instance.ts'
import type { Gossip, Network, Verdict } from '../network/network.ts'
import type { Random } from '../random.ts'
import type { Telemetry } from '../telemetry/events.ts'
import { createStrangers } from './strangers.ts'

/** An authentic report, and who stands behind the key that signed it. */
export interface HeardReport {
  readonly presence: Presence
  readonly identity: Identity
}

/** What this peer reports of itself; read anew for each report. */
export interface OwnState {
  readonly capabilities: readonly string[]
  readonly load: number
  readonly queueDepth: number
  readonly success: number
  readonly manifestSerial: number
}

export interface PresenceOptions {
  readonly agentId: string
  readonly networkName: string
  readonly epoch: number
  /** The agent key, and what signs for it. */
  readonly key: PublicKey
  readonly instance: () => OwnInstance
  readonly identities: Pick<Identities, 'read' | 'isKnown'>
  readonly network: Network
  readonly clock: Clock
  readonly random: Random
  readonly tunables: Tunables
  readonly telemetry: Telemetry
  own(): OwnState
  /** Judges an authentic report of another agent. */
  heard(report: HeardReport): Verdict
}

/** Reports on the presence topic: sent regularly and at each change of state, heard from others. */
export interface PresenceBeacon {
  start(): void
  /** Sends now: something has changed, or somebody new should hear of us soon. */
  announce(state?: PresenceState): Promise<void>
  /** Sends within a second, unless a report went out lately. */
  introduce(): void
  /** Sends nothing until it is released: whether it is this process that others mean is in doubt. */
  hold(held: boolean): void
  stop(): void
}

/** After a change nobody may be on the topic yet: it is repeated until one peer has heard it, this often. */
const REPEAT_MS = 200

const TOO_MANY = new HermesError('BUSY', { message: 'too many reports of agents that are not admitted' })

export function createPresenceBeacon(options: PresenceOptions): PresenceBeacon {
  const { network, clock, random, tunables, telemetry, key, instance, agentId, networkName, epoch } = options
  const topic = presenceTopic(networkName)
  const strangers = createStrangers({
    clock,
    windowMs: tunables.presenceWindowMs,
    perNeighbour: tunables.presenceStrangers,
    inAll: tunables.presenceStrangersPerNode,
  })
  let counter = 0
  let state: PresenceState = 'up'
  let sentAt = Number.NEGATIVE_INFINITY
  let regular: Timer | undefined
  let soon: Timer | undefined
  let repeat: Timer | undefined
  let unsubscribe = (): void => undefined
  let stopped = false
  let held = false

  const send = async (): Promise<number> => {
    const document = signPresence(
      {
        agent_id: agentId,
        key: key.raw,
        certificates: instance().certificates,
        network: networkName,
        epoch,
        counter: counter++,
        state,
        addresses: network.addresses(),
        ...report(options.own()),
      },
      instance().key,
    )
    const peers = await network.publish(topic, document)
    if (peers > 0) sentAt = clock.monotonic()
    telemetry.emit('presence.sent', { peers, state })
    return peers
  }

  const announce = async (next?: PresenceState): Promise<void> => {
    if (stopped) return
    if (next) state = next
    if (held) return
    clock.clear(repeat)
    const peers = await send().catch(() => 0)
    // Nobody was there to hear it; on the way out nobody will wait for it either.
    if (peers === 0 && state !== 'leaving' && !stopped) repeat = clock.after(REPEAT_MS, () => void announce())
  }

  const schedule = (): void => {
    const jitter = 1 + tunables.presenceJitter * (2 * random.next() - 1)
    regular = clock.after(tunables.presenceMs * jitter, () => {
      if (!held) void send().catch(() => undefined)
      schedule()
    })
  }

  /** Of whoever is not on record nothing is remembered, and no more is checked than its neighbour may make us check. */
  const identify = (shown: Shown, from: string): Identity => {
    if (options.identities.isKnown(shown.agent_id, fingerprintOf(shown.key))) return options.identities.read(shown)
    if (strangers.take(from)) return options.identities.read(shown, { forget: true })
    throw TOO_MANY
  }

  const receive = ({ data, from }: Gossip): Verdict => {
    let identity: Identity | undefined
    let presence: Presence
    try {
      const opened = openPresence(data, (shown) => {
        identity = identify(shown, from)
        return identity.signer
      })
      presence = opened.presence
      if (presence.network !== networkName) throw new HermesError('WRONG_NETWORK')
    } catch (error) {
      if (error === TOO_MANY) return 'ignore'
      const refusal = HermesError.from(error)
      telemetry.emit('presence.refused', { code: refusal.code, reason: refusal.message })
      // Clocks differ: what has run out here may hold elsewhere, and whoever passed it on has done nothing wrong.
      return refusal.code === 'EXPIRED' ? 'ignore' : 'reject'
    }
    return options.heard({ presence, identity: identity as unknown as Identity })
  }

  return {
    start() {
      unsubscribe = network.subscribe(topic, receive)
      void announce('up')
      schedule()
    },
    announce,
    introduce() {
      if (stopped || held || soon || clock.monotonic() - sentAt < tunables.presenceMs / 2) return
      soon = clock.after(random.next() * 500, () => {
        soon = undefined
        if (!held) void send().catch(() => undefined)
      })
    },
    hold(now) {
      if (held === now) return
      held = now
      clock.clear(repeat)
      if (!held) void announce()
    },
    stop() {
      stopped = true
      for (const timer of [regular, soon, repeat]) clock.clear(timer)
      unsubscribe()
    },
  }
}

function report(own: OwnState) {
  return {
    capabilities: own.capabilities,
    load: Math.min(100, Math.max(0, Math.round(own.load))),
    queue_depth: own.queueDepth,
    success_rate_15m: own.success,
    manifest_serial: own.manifestSerial,
  }
}
