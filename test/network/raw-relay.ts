import '../../packages/peer/src/network/polyfill.ts'
import { noise } from '@chainsafe/libp2p-noise'
import { yamux } from '@chainsafe/libp2p-yamux'
import { signingKey } from '@hermes-peer/protocol'
import { circuitRelayServer } from '@libp2p/circuit-relay-v2'
import { privateKeyFromRaw } from '@libp2p/crypto/keys'
import { identify } from '@libp2p/identify'
import type { ConnectionEncrypter, SecuredConnection } from '@libp2p/interface'
import { tcp } from '@libp2p/tcp'
import { createLibp2p } from 'libp2p'
import { onTestFinished } from 'vitest'
import { seedOf } from './support.ts'

export interface RawRelay {
  readonly address: string
  /** Everything that it has sent to anybody, after it took off the encryption between itself and the sender. */
  readonly seen: Uint8Array[]
  stop(): Promise<void>
}

/** A relay of plain libp2p, which knows nothing of agents. The key of a name is always the same. */
export async function rawRelay(name: string, port = 0): Promise<RawRelay> {
  const seen: Uint8Array[] = []
  const tap = (secured: SecuredConnection): SecuredConnection => {
    const { connection } = secured
    const send = connection.send.bind(connection)
    connection.send = (data) => {
      seen.push(data.subarray())
      return send(data)
    }
    return secured
  }
  const encrypter = (components: Parameters<ReturnType<typeof noise>>[0]): ConnectionEncrypter => {
    const inner = noise()(components)
    return {
      protocol: inner.protocol,
      secureInbound: async (...how) => tap(await inner.secureInbound(...how)),
      secureOutbound: async (...how) => tap(await inner.secureOutbound(...how)),
    }
  }
  const seed = seedOf(name)
  const node = await createLibp2p({
    privateKey: privateKeyFromRaw(Buffer.concat([seed, signingKey(seed).publicKey.raw])),
    addresses: { listen: [`/ip4/127.0.0.1/tcp/${port}`] },
    transports: [tcp()],
    connectionEncrypters: [encrypter],
    streamMuxers: [
      yamux({
        enableKeepAlive: false,
        streamOptions: { initialStreamWindowSize: 262_144, maxStreamWindowSize: 262_144 },
      }),
    ],
    connectionManager: { inboundConnectionThreshold: 1000, maxIncomingPendingConnections: 100 },
    connectionMonitor: { enabled: false },
    services: {
      identify: identify(),
      relay: circuitRelayServer({
        reservations: { applyDefaultLimit: true, defaultDataLimit: 1n << 30n, defaultDurationLimit: 3_600_000 },
      }),
    },
  })
  await node.handle('/echo', (stream) => {
    stream.addEventListener('message', ({ data }) => stream.send(data))
  })
  onTestFinished(() => node.stop())
  const address = node.getMultiaddrs().map(String)[0] as string
  return { address, seen, stop: async () => node.stop() }
}
