import { checkName, HermesError } from '@hermes-peer/protocol'
import { DEFAULTS } from '../../defaults.ts'
import type { RecordKinds } from '../records.ts'

/** How to run a peer's transport over TCP, Noise and yamux. */
export interface Libp2pNetworkOptions {
  /** Seed of the Ed25519 key, 32 bytes. The peer id follows from it. */
  privateKey: Uint8Array
  /** Separates networks: peers of different names never share a DHT, and ignore each other's topics. */
  networkName: string
  /** Multiaddrs to listen on; port 0 is any free one, an empty list only dials. Default `/ip4/127.0.0.1/tcp/0`. */
  listen?: readonly string[]
  /** Multiaddrs to tell others instead of those that are listened on, for a peer behind a forwarded port. */
  announce?: readonly string[]
  /** The key that all peers of a private network share, 32 bytes; without it nothing on a connection can be read. */
  preSharedKey?: Uint8Array
  /** Find peers of the same network on the local link by multicast DNS and connect to them. Default false. */
  mdns?: boolean
  /** A dial, from the first address to an open channel, ends after this. Default 2,000 ms. */
  dialTimeoutMs?: number
  limits?: Libp2pLimits
  /** Kinds of records that the DHT keeps, with their checks; others are refused. Default none. */
  records?: RecordKinds
  /** Largest gossip message in bytes, by topic. Default 65,536 for each topic that is not named. */
  topics?: Readonly<Record<string, number>>
}

export interface Libp2pLimits {
  /** Transport connections; over it incoming ones are refused and the least valued unused ones closed. Default 300. */
  maxConnections?: number
  /** Incoming connections whose encryption is not agreed on yet; further ones are refused. Default 64. */
  pendingHandshakes?: number
  /** New connections per second from one IP address. Default: no limit, since many peers of one machine share one. */
  perAddressLimit?: number
  /** Channels that one connection may hold open towards this peer, by protocol. Default 8 for each that is not named. */
  inboundChannels?: Readonly<Record<string, number>>
}

/** The options with every default filled in. */
export interface Settings {
  readonly privateKey: Uint8Array
  readonly networkName: string
  readonly listen: readonly string[]
  readonly announce: readonly string[]
  readonly preSharedKey: Uint8Array | undefined
  readonly mdns: boolean
  readonly dialTimeoutMs: number
  readonly records: RecordKinds
  readonly maxConnections: number
  readonly pendingHandshakes: number
  readonly perAddressLimit: number
  readonly inboundChannels: (protocol: string) => number
  readonly topicBytes: (topic: string) => number
}

/** A link and its successor during reconnects, with room for a few refused attempts. */
const INBOUND_CHANNELS = 8
/** One broadcast frame. */
const TOPIC_BYTES = 64 * 1024

const number = (field: string, value: number): number => {
  if (Number.isFinite(value) && value >= 1) return value
  throw new HermesError('INVALID_OPTION', {
    message: `${field}: ${value} is not a number of at least 1`,
    details: { field },
  })
}

/** Checks the options once; throws `INVALID_OPTION` or `INVALID_NAME` that names the field. */
export function settingsOf(options: Libp2pNetworkOptions): Settings {
  const { privateKey, limits = {}, topics = {} } = options
  if (!(privateKey instanceof Uint8Array) || privateKey.length !== 32) {
    throw new HermesError('INVALID_OPTION', {
      message: 'privateKey: the seed of an Ed25519 key has 32 bytes',
      details: { field: 'privateKey' },
    })
  }
  const { preSharedKey } = options
  if (preSharedKey !== undefined && !(preSharedKey instanceof Uint8Array && preSharedKey.length === 32)) {
    throw new HermesError('INVALID_OPTION', {
      message: 'preSharedKey: a key of a private network has 32 bytes',
      details: { field: 'preSharedKey' },
    })
  }
  const channels = { ...limits.inboundChannels }
  for (const [protocol, count] of Object.entries(channels)) number(`limits.inboundChannels[${protocol}]`, count)
  for (const [topic, bytes] of Object.entries(topics)) number(`topics[${topic}]`, bytes)
  return {
    privateKey,
    networkName: checkName('network', options.networkName, 'networkName'),
    listen: options.listen ?? ['/ip4/127.0.0.1/tcp/0'],
    announce: options.announce ?? [],
    preSharedKey,
    mdns: options.mdns ?? false,
    dialTimeoutMs: number('dialTimeoutMs', options.dialTimeoutMs ?? DEFAULTS.dialTimeoutMs),
    records: options.records ?? {},
    maxConnections: number('limits.maxConnections', limits.maxConnections ?? DEFAULTS.maxConnections),
    pendingHandshakes: number('limits.pendingHandshakes', limits.pendingHandshakes ?? DEFAULTS.pendingHandshakes),
    perAddressLimit:
      limits.perAddressLimit === undefined
        ? Number.POSITIVE_INFINITY
        : number('limits.perAddressLimit', limits.perAddressLimit),
    inboundChannels: (protocol) =>
      (Object.hasOwn(channels, protocol) ? channels[protocol] : undefined) ?? INBOUND_CHANNELS,
    topicBytes: (topic) => (Object.hasOwn(topics, topic) ? topics[topic] : undefined) ?? TOPIC_BYTES,
  }
}
