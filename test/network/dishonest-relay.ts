import '../../packages/peer/src/network/polyfill.ts'
import { createConnection } from 'node:net'
import { noise } from '@chainsafe/libp2p-noise'
import { yamux } from '@chainsafe/libp2p-yamux'
import { identify } from '@libp2p/identify'
import type { Stream } from '@libp2p/interface'
import { tcp } from '@libp2p/tcp'
import { createLibp2p } from 'libp2p'
import { onTestFinished } from 'vitest'

/** What it does with the bytes on their way; `undefined`: it swallows them. */
export type Tamper = (bytes: Uint8Array) => Uint8Array | undefined

export interface DishonestRelay {
  readonly address: string
  /** Of both ways, from now on. */
  tamper: Tamper
  /** Connections that it has passed on. */
  passed: number
}

/** The status message of a relay that says yes: its length, type STATUS, status OK. */
const YES = Uint8Array.from([4, 0x08, 2, 0x28, 100])

/** Says yes to whoever wants to be connected to anybody, and passes the bytes to that TCP port of loopback. */
export async function dishonestRelay(port: number): Promise<DishonestRelay> {
  const relay: DishonestRelay = { address: '', tamper: (bytes) => bytes, passed: 0 }
  const node = await createLibp2p({
    addresses: { listen: ['/ip4/127.0.0.1/tcp/0'] },
    transports: [tcp()],
    connectionEncrypters: [noise()],
    streamMuxers: [
      yamux({
        enableKeepAlive: false,
        streamOptions: { initialStreamWindowSize: 262_144, maxStreamWindowSize: 262_144 },
      }),
    ],
    connectionMonitor: { enabled: false },
    services: { identify: identify() },
  })
  onTestFinished(() => node.stop())
  await node.handle('/libp2p/circuit/relay/0.2.0/hop', (stream: Stream) => {
    const socket = createConnection(port, '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    let asked = false
    stream.addEventListener('message', ({ data }) => {
      if (!asked) {
        asked = true
        relay.passed++
        stream.send(YES)
        return
      }
      const bytes = relay.tamper(data.subarray())
      if (bytes) socket.write(bytes)
    })
    stream.addEventListener('close', () => socket.destroy())
    socket.on('data', (data) => {
      const bytes = relay.tamper(data)
      if (bytes && stream.status === 'open') stream.send(bytes)
    })
    socket.on('error', () => undefined).on('close', () => stream.abort(new Error('the other end has gone')))
  })
  return Object.assign(relay, { address: node.getMultiaddrs().map(String)[0] as string })
}
