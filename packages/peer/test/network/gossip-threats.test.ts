import { randomBytes } from 'node:crypto'
import { noise } from '@chainsafe/libp2p-noise'
import { yamux } from '@chainsafe/libp2p-yamux'
import { identify } from '@libp2p/identify'
import { tcp } from '@libp2p/tcp'
import { multiaddr } from '@multiformats/multiaddr'
import { createLibp2p } from 'libp2p'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createTopics } from '../../src/network/libp2p/gossip.ts'
import { createGossipScore } from '../../src/network/libp2p/gossip-score.ts'
import { keyFromSeed } from '../../src/network/libp2p/identity.ts'
import { createNode } from '../../src/network/libp2p/node.ts'
import { settingsOf } from '../../src/network/libp2p/options.ts'
import { startRun } from '../../src/network/libp2p/run.ts'
import { until } from '../waiting.ts'
import { NETWORK, network, PROTOCOL, soon } from './support.ts'

const MESHSUB = ['/meshsub/1.2.0', '/meshsub/1.1.0', '/meshsub/1.0.0']

const varint = (value: number): Buffer => {
  const bytes: number[] = []
  for (let left = value; ; left = Math.floor(left / 128)) {
    if (left < 128) return Buffer.from([...bytes, left])
    bytes.push((left % 128) | 0x80)
  }
}
const field = (number: number, value: Uint8Array) =>
  Buffer.concat([varint(number * 8 + 2), varint(value.length), value])
const subscription = (topic: string) => field(1, Buffer.concat([Buffer.from([8, 1]), field(2, Buffer.from(topic))]))
const message = (topic: string, data: Uint8Array) =>
  field(2, Buffer.concat([field(2, data), field(4, Buffer.from(topic))]))
const frame = (...parts: Buffer[]) => {
  const body = Buffer.concat(parts)
  return Buffer.concat([varint(body.length), body])
}

/** A node whose gossip can be looked into, somebody honest beside it, and somebody who writes what he likes. */
async function scene() {
  const settings = settingsOf({ privateKey: randomBytes(32), networkName: NETWORK })
  const score = createGossipScore()
  const topics = createTopics({ prefix: `hermes/${NETWORK}/`, topicBytes: settings.topicBytes, score })
  const listen = [multiaddr('/ip4/127.0.0.1/tcp/0')]
  const node = await createNode({
    settings,
    privateKey: keyFromSeed(settings.privateKey),
    listen,
    announce: [],
    score,
    nativeCrypto: undefined,
    onFound: () => undefined,
  })
  const run = await startRun({
    node,
    settings,
    listen,
    topics,
    handlers: new Map([[PROTOCOL, () => {}]]),
    events: () => ({}),
  })
  onTestFinished(() => run.stop())
  const address = run.addresses()[0] as string
  const topic = `hermes/${NETWORK}/presence/1`
  const heard: string[] = []
  topics.subscribe(topic, ({ data }) => {
    const text = Buffer.from(data).toString()
    if (text.startsWith('bad')) return 'reject'
    heard.push(text)
    return 'accept'
  })
  const friend = network()
  await friend.start()
  friend.subscribe(topic, () => 'accept')
  await friend.open({ addresses: [address] }, PROTOCOL, { signal: soon() })
  const evil = await createLibp2p({
    transports: [tcp()],
    connectionEncrypters: [noise()],
    streamMuxers: [yamux()],
    services: { identify: identify() },
    connectionMonitor: { enabled: false },
  })
  onTestFinished(async () => {
    await evil.stop()
  })
  // Gossip is opened to whoever says that he speaks it.
  await evil.handle(MESHSUB, () => {})
  const connection = await evil.dial(multiaddr(address))
  const write = async (bytes: Uint8Array): Promise<void> => {
    try {
      const stream = await connection.newStream(MESHSUB)
      for (let at = 0; at < bytes.length && stream.status === 'open'; at += 64 * 1024) {
        if (!stream.send(bytes.subarray(at, at + 64 * 1024))) await new Promise((resolve) => setTimeout(resolve, 5))
      }
      await new Promise((resolve) => setTimeout(resolve, 20))
      await stream.close().catch(() => undefined)
    } catch {
      // It was reset, as it should be.
    }
  }
  let number = 0
  const served = async (): Promise<void> => {
    const text = `good ${number++}`
    await until(() => {
      if (!heard.includes(text)) void friend.publish(topic, Buffer.from(text)).catch(() => undefined)
      return heard.includes(text)
    }, 'an honest message')
  }
  await served()
  const known = () => {
    const all = (node.gossip as unknown as { topics: Map<string, Set<string>> }).topics
    return [...all].filter(([, peers]) => peers.has(evil.peerId.toString())).map(([name]) => name)
  }
  return { node, evil, write, served, known, topic, heard }
}

describe('threat: gossip spam', () => {
  it('a subscription frame of 4 MiB is not taken, and gossip goes on', async () => {
    const { write, served, known } = await scene()
    const subscriptions = Array.from({ length: 70_000 }, (_, at) =>
      subscription(`hermes/${NETWORK}/topic/t${at}-${'x'.repeat(30)}`),
    )
    const huge = frame(...subscriptions)
    expect(huge.length).toBeGreaterThan(4 * 1024 * 1024)
    await write(huge)
    await served()
    expect(known()).toEqual([])
  })

  it('many topics, frame by frame, fill no more than the bound; those of other networks none', async () => {
    const { write, served, known } = await scene()
    for (let round = 0; round < 20; round++) {
      const name = (at: number) => `hermes/${NETWORK}/topic/r${round}-${at}-${'x'.repeat(20)}`
      await write(frame(...Array.from({ length: 200 }, (_, at) => subscription(name(at)))))
      await write(frame(...Array.from({ length: 100 }, (_, at) => subscription(`elsewhere/${round}-${at}`))))
    }
    await served()
    expect(known().filter((name) => name.startsWith('elsewhere'))).toEqual([])
    expect(known().join('').length).toBeLessThanOrEqual(256 * 1024)
    expect(known().length).toBeGreaterThan(0)
    expect(known().length).toBeLessThan(1000)
  })

  it('messages that are no messages, or rejected, do not pass, and their sender is not listened to any more', async () => {
    const { write, served, topic, heard, evil, node } = await scene()
    await write(frame(randomBytes(1000)))
    for (let round = 0; round < 20; round++) await write(frame(message(topic, Buffer.from(`bad ${round}`))))
    await served()
    const score = () =>
      (node.gossip as unknown as { score: { score(id: string): number } }).score.score(evil.peerId.toString())
    // Reckoned anew each second.
    await until(() => score() < -80, 'a score below which nobody is listened to')
    await write(frame(message(topic, Buffer.from('late, and well formed'))))
    await served()
    expect(heard).not.toContain('late, and well formed')
  })
})
