import {
  type AnyEvent,
  capability,
  createPeer,
  type EventName,
  type EventOf,
  type Peer,
  type PeerOptions,
} from 'hermes-peer'
import { z } from 'zod'
import type { Actor, Place } from './actors.ts'
import { eventually } from './eventually.ts'

/** What both sides of most tests use: gives back what it is given. */
export const echo = capability('echo', {
  description: 'Gives back what it is given.',
  input: z.unknown(),
  output: z.unknown(),
  effects: 'none',
})

/** Ends only when it is told to. */
export const slow = capability('slow', {
  description: 'Takes as long as it is let.',
  input: z.unknown(),
  output: z.unknown(),
  effects: 'none',
})

/** Answers with much. */
export const bulk = capability('bulk', {
  description: 'Gives more than it is given.',
  input: z.unknown(),
  output: z.string(),
  effects: 'none',
})

/** A real peer that is attacked, with all that it says of it. */
export interface Victim {
  readonly peer: Peer
  readonly self: Actor
  readonly address: string
  readonly events: readonly AnyEvent[]
  of<K extends EventName>(type: K): EventOf<K>[]
  /** The next event of that type that fits, counted from `mark`. */
  until<K extends EventName>(type: K, match?: (event: EventOf<K>) => boolean, ms?: number): Promise<EventOf<K>>
  /** From here on `of` and `until` look at newer events only. */
  mark(): void
  /** Links that stand, by what was said of them. */
  readonly links: number
  /** Inputs that the handler of `echo` has been started with. */
  readonly served: readonly unknown[]
}

export interface VictimOptions extends Partial<PeerOptions> {
  as: Actor
  place: Place
  /** Its allow list. */
  allow?: readonly Actor[]
  /** Makes the peer; default `createPeer`. */
  make?: (options: PeerOptions) => Peer
  prepare?: (peer: Peer) => void
}

/** Nothing of what is tested here is slow: waits are as short as a busy machine allows. */
const QUICK = {
  handshakeTimeoutMs: 3000,
  // Everybody here comes from one address.
  pendingHandshakesPerAddress: 1000,
  // Who was refused once is attacked from again, under the same key: its connection must stand until the test is over.
  callerGraceMs: 60_000,
}

export async function startVictim(options: VictimOptions): Promise<Victim> {
  const { as, place, allow = [], make = createPeer, prepare, ...more } = options
  const peer = make({
    agentId: as.agentId,
    preset: 'none',
    identity: place.keyFile(as),
    trust: { allow: allow.map(({ listed }) => listed) },
    // Two peers of one key stand for two machines, which share no journal.
    journal: false,
    ...more,
    tuning: { ...QUICK, ...more.tuning },
  })
  const events: AnyEvent[] = []
  const served: unknown[] = []
  let from = 0
  let links = 0
  peer.events.onAny((event) => {
    events.push(event)
    if (event.type === 'link.up') links++
    if (event.type === 'link.down') links--
  })
  peer.provide(echo, (input) => {
    served.push(input)
    return input
  })
  prepare?.(peer)
  await peer.start()
  const of = <K extends EventName>(type: K) =>
    events.slice(from).filter((event): event is EventOf<K> & AnyEvent => event.type === type)
  return {
    peer,
    self: as,
    address: peer.addresses[0] as string,
    events,
    of,
    until: (type, match = () => true, ms) =>
      eventually(() => of(type).find(match), `the event ${type} of ${as.agentId}`, ms),
    mark: () => {
      from = events.length
    },
    get links() {
      return links
    },
    served,
  }
}
