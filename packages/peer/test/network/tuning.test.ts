import { createRequire } from 'node:module'
import { Socket } from 'node:net'
import { type ICryptoInterface, noise } from '@chainsafe/libp2p-noise'
import { yamux } from '@chainsafe/libp2p-yamux'
import type { ConnectionProtector, MultiaddrConnection, Stream, StreamMuxerFactory } from '@libp2p/interface'
import { preSharedKey } from '@libp2p/pnet'
import { tcp } from '@libp2p/tcp'
import { createLibp2p } from 'libp2p'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { protection } from '../../src/network/libp2p/private-network.ts'
import { corkWrites } from '../../src/network/libp2p/tuning/cork.ts'
import { lazyWindow } from '../../src/network/libp2p/tuning/lazy-window.ts'
import { loadNativeCrypto } from '../../src/network/libp2p/tuning/native-crypto.ts'
import { until } from '../waiting.ts'
import { open, record, serveEcho, started } from './support.ts'

interface Tuning {
  connectionProtector?: () => ConnectionProtector
  streamMuxer?: ReturnType<typeof yamux>
  crypto?: ICryptoInterface
}

/** Plain libp2p with only what is given, and nothing that talks by itself. */
async function node({ connectionProtector, streamMuxer = yamux({ enableKeepAlive: false }), crypto }: Tuning = {}) {
  const created = await createLibp2p({
    addresses: { listen: ['/ip4/127.0.0.1/tcp/0'] },
    transports: [tcp()],
    connectionEncrypters: [noise(crypto === undefined ? {} : { crypto })],
    streamMuxers: [streamMuxer],
    connectionMonitor: { enabled: false },
    ...(connectionProtector === undefined ? {} : { connectionProtector }),
  })
  onTestFinished(() => created.stop())
  return created
}

const ROUNDS = 50

/** Sends small messages there and back, one after the other, over a fresh stream. */
async function echoed(near: Tuning, far = near): Promise<void> {
  const [a, b] = await Promise.all([node(near), node(far)])
  await b.handle('/echo', (stream: Stream) => stream.addEventListener('message', ({ data }) => stream.send(data)))
  const stream = await a.dialProtocol(b.getMultiaddrs(), '/echo')
  let got = 0
  stream.addEventListener('message', ({ data }) => {
    got += data.byteLength
  })
  counts.writes = 0
  for (let round = 1; round <= ROUNDS; round += 1) {
    stream.send(new Uint8Array(300))
    await until(() => got === round * 300, 'the echo')
  }
}

const counts = { writes: 0 }
/** Counts calls into the kernel: a socket hands over one buffer, or several at once. */
function countWrites(): void {
  for (const method of ['_write', '_writev'] as const) {
    const own = Reflect.get(Socket.prototype, method) as (...parameters: unknown[]) => void
    vi.spyOn(Socket.prototype, method).mockImplementation(function (this: Socket, ...parameters: unknown[]) {
      counts.writes += 1
      own.apply(this, parameters)
    })
  }
}

afterEach(() => {
  vi.restoreAllMocks()
})

const tunedMuxer = () => lazyWindow(yamux({ enableKeepAlive: false }))

describe('corking', () => {
  it('writes less often than plain libp2p', async () => {
    countWrites()
    await echoed({})
    const plain = counts.writes
    await echoed({ connectionProtector: corkWrites() })
    expect(counts.writes).toBeLessThan(plain / 2)
  })

  it('writes as seldom below the cipher of a private network', async () => {
    const psk = new Uint8Array(32).fill(7)
    const text = Buffer.from(`/key/swarm/psk/1.0.0/\n/base16/\n${Buffer.from(psk).toString('hex')}`)
    countWrites()
    await echoed({ connectionProtector: preSharedKey({ psk: text }) })
    const plain = counts.writes
    await echoed({ connectionProtector: corkWrites() })
    const corked = counts.writes
    await echoed({ connectionProtector: (await protection(psk)).protector })
    expect(counts.writes).toBeLessThan(plain)
    expect(counts.writes).toBeLessThanOrEqual(corked + 4)
  })

  it('leaves a connection alone that is not what it expects', async () => {
    const protector = corkWrites()()
    for (const odd of [{}, { socket: {}, sendData: () => {} }, { socket: new Socket(), sendData: 1 }]) {
      const before = { ...odd }
      await protector.protect(odd as never)
      expect(odd).toEqual(before)
    }
  })
})

describe('the lazy window', () => {
  it('saves the frame that would answer each message', async () => {
    countWrites()
    await echoed({ connectionProtector: corkWrites() })
    const plain = counts.writes
    await echoed({ connectionProtector: corkWrites(), streamMuxer: tunedMuxer() })
    expect(counts.writes).toBeLessThanOrEqual(ROUNDS * 2 + 4)
    expect(counts.writes).toBeLessThan(plain * 0.75)
  })

  it('still moves far more than one window, to a plain peer and back', async () => {
    const [a, b] = await Promise.all([node({ streamMuxer: tunedMuxer() }), node()])
    let [there, back] = [0, 0]
    const size = 3 * 1024 * 1024
    await b.handle('/bulk', (stream: Stream) => {
      stream.send(new Uint8Array(size))
      stream.addEventListener('message', ({ data }) => {
        there += data.byteLength
      })
    })
    const stream = await a.dialProtocol(b.getMultiaddrs(), '/bulk')
    stream.addEventListener('message', ({ data }) => {
      back += data.byteLength
    })
    stream.send(new Uint8Array(size))
    await until(() => there === size && back === size, 'all bytes')
  })

  it('leaves a muxer alone that is not what it expects', () => {
    const madeBy = (muxer: object): object => {
      const factory = { protocol: 'odd', createStreamMuxer: () => muxer } as unknown as StreamMuxerFactory
      return lazyWindow(() => factory)().createStreamMuxer({} as MultiaddrConnection)
    }
    const odd = { protocol: 'odd' }
    expect(madeBy(odd)).toBe(odd)
    const own = () => {}
    const made = madeBy({ _newStream: () => ({ state: 'odd', sendWindowUpdate: own }) }) as { _newStream(): object }
    expect(made._newStream()).toEqual({ state: 'odd', sendWindowUpdate: own })
  })
})

describe('native cryptography', () => {
  const sodium = createRequire(import.meta.url)('sodium-native') as Record<
    string,
    (...parameters: unknown[]) => unknown
  >

  it('is loaded, and understood by a peer without it', async () => {
    const crypto = await loadNativeCrypto()
    if (crypto === undefined) throw new Error('not loaded')
    const seal = vi.spyOn(crypto, 'chaCha20Poly1305Encrypt')
    const opened = vi.spyOn(crypto, 'chaCha20Poly1305Decrypt')
    const agree = vi.spyOn(crypto, 'generateX25519SharedKey')
    await echoed({ crypto }, {})
    await echoed({}, { crypto })
    expect(seal.mock.calls.length).toBeGreaterThan(ROUNDS)
    expect(opened.mock.calls.length).toBeGreaterThan(ROUNDS)
    expect(agree).toHaveBeenCalled()
  })

  it('refuses what was changed on the way, and keys of small order', async () => {
    const crypto = await loadNativeCrypto()
    if (crypto === undefined) throw new Error('not loaded')
    const [key, nonce, none] = [new Uint8Array(32).fill(1), new Uint8Array(12), new Uint8Array(0)]
    const sealed = crypto.chaCha20Poly1305Encrypt(new Uint8Array(40), nonce, none, key).subarray()
    sealed[3] = (sealed[3] as number) ^ 1
    expect(() => crypto.chaCha20Poly1305Decrypt(sealed, nonce, none, key)).toThrow()
    expect(() => crypto.chaCha20Poly1305Decrypt(new Uint8Array(15), nonce, none, key)).toThrow()
    expect(() => crypto.generateX25519SharedKey(key, new Uint8Array(32))).toThrow()
  })

  it('is left out when it is not there, and when it does not agree with Node', async () => {
    expect(await loadNativeCrypto(() => Promise.reject(new Error('not installed')))).toBeUndefined()
    const wrong = { ...sodium, crypto_aead_chacha20poly1305_ietf_encrypt: (out: Uint8Array) => out.fill(0).length }
    expect(await loadNativeCrypto(() => Promise.resolve(wrong))).toBeUndefined()
    expect(await loadNativeCrypto(() => Promise.resolve({}))).toBeUndefined()
  })
})

describe('a network', () => {
  it('uses all three', async () => {
    const sodium = createRequire(import.meta.url)('sodium-native') as {
      crypto_aead_chacha20poly1305_ietf_encrypt(): number
    }
    const seal = vi.spyOn(sodium, 'crypto_aead_chacha20poly1305_ietf_encrypt')
    const [a, b] = await Promise.all([started(), started()])
    serveEcho(b)
    const channel = await open(a, b)
    const answer = record(channel)
    // What identify, the DHT and gossip say to a new neighbour is over when the event loop has been idle for a while.
    let before = -1
    await until(() => {
      const quiet = seal.mock.calls.length === before
      before = seal.mock.calls.length
      return quiet
    })
    countWrites()
    counts.writes = 0
    for (let round = 1; round <= ROUNDS; round += 1) {
      channel.send(new Uint8Array(300))
      await until(() => answer.bytes === round * 300, 'the echo')
    }
    expect(seal.mock.calls.length - before).toBeGreaterThanOrEqual(ROUNDS * 2)
    // Plain libp2p needs eight per round trip; two, and what the services say to each other meanwhile.
    expect(counts.writes).toBeLessThan(ROUNDS * 2.5)
  })
})
