import { channel } from 'node:diagnostics_channel'
import type { GossipSub } from '@libp2p/gossipsub'

/** What upkeep of the network has brought in: requests of the DHT, and messages of gossip, those known already included. */
export interface Traffic {
  readonly kind: 'dht' | 'gossip'
  readonly messages: number
}

const arrived = channel('hermes-peer:traffic')

/** Told on the diagnostics channel `hermes-peer:traffic`; costs next to nothing while nobody listens there. */
export function reportTraffic(kind: Traffic['kind'], messages: number): void {
  if (arrived.hasSubscribers) arrived.publish({ kind, messages } satisfies Traffic)
}

type HandleRpc = (from: unknown, rpc: { messages?: readonly unknown[] }) => Promise<void>

/** gossipsub tells only of messages that are new. Where its handler is not where it used to be, gossip is not counted. */
export function countGossip(service: GossipSub): void {
  const counted = service as unknown as { handleReceivedRpc?: HandleRpc }
  const handle = counted.handleReceivedRpc
  if (typeof handle !== 'function') return
  counted.handleReceivedRpc = (from, rpc) => {
    if (rpc.messages?.length) reportTraffic('gossip', rpc.messages.length)
    return handle.call(service, from, rpc)
  }
}
