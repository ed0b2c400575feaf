import type { Channel, Gossip, RecordJudge, Verdict } from 'hermes-peer'
import type { ConnectionEnd } from './connection-end.ts'

/** One running peer, as connections, DHT and gossip see it. */
export interface Host {
  readonly peerId: string
  /** False after `stop` and after a crash. */
  readonly running: boolean
  /** Where its outgoing connections come from, like `/ip4/127.0.0.1`. */
  readonly address: string
  /** Living ends of its connections, oldest first. */
  readonly ends: readonly ConnectionEnd[]
  addresses(): readonly string[]
  /** Judges records of the DHT that it keeps or finds. */
  readonly judge: RecordJudge
  handler(protocol: string): ((channel: Channel) => void) | undefined
  receiver(topic: string): ((message: Gossip) => Verdict) | undefined
  /** Remembers where a peer can be reached. */
  learn(peerId: string, addresses: readonly string[]): void
  /** A connection has come to be. */
  joined(end: ConnectionEnd): void
  /** A connection is gone. */
  left(end: ConnectionEnd): void
  /** Ends without a word: what a killed process does. */
  crash(): void
}

/** Its oldest living connection to a peer. */
export function endTo(host: Host, peerId: string): ConnectionEnd | undefined {
  return host.ends.find((end) => end.remotePeer === peerId)
}

/** Peers it has a connection to, each once, in the order of the connections. */
export function neighbours(host: Host): ConnectionEnd[] {
  const seen = new Set<string>()
  return host.ends.filter((end) => !seen.has(end.remotePeer) && seen.add(end.remotePeer))
}
