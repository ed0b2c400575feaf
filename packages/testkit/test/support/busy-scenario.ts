import type { Channel, Network } from 'hermes-peer'
import { createTimeline } from '../../src/clock/timeline.ts'
import { pattern } from '../../src/compliance/recorder.ts'
import { createEnvelopeFaults } from '../../src/network/envelope-faults.ts'
import { createMemoryWorld } from '../../src/network/world.ts'
import { seededRandom } from '../../src/random/seeded-random.ts'
import { createTrace } from '../../src/trace.ts'
import { peerIdOf } from './peer-id.ts'

const TALK = '/test/talk/1'
const TOPIC = 'news'
const PEERS = 20
const BUSY_MS = 5_000
const CIDS = [1, 2, 3].map((kind) => Uint8Array.of(1, 0x55, 0x12, kind))
const IDS = Array.from({ length: PEERS }, (_, index) => peerIdOf(`busy ${index}`))

/** 20 peers that talk, gossip, announce and look for each other for 5 s while everything that can fails. */
export async function busyScenario(seed: number) {
  const timeline = createTimeline()
  const random = seededRandom(seed)
  const trace = createTrace()
  const world = createMemoryWorld({ timeline, random: random.fork('world'), trace })
  const plan = random.fork('plan')
  const note = (text: string) => trace.add(`${timeline.now()} ${text}`)
  const hub = '/ip4/127.0.0.1/tcp/4001'
  const lives = new Map<string, Network>()
  let bytes = 0

  const live = async (index: number) => {
    const peerId = IDS[index] as string
    const network = world.network({
      peerId,
      ...(index === 0 ? { listen: [hub] } : { bootstrap: [hub] }),
    })
    const clock = timeline.clock({ skewMs: plan.int(-240_000, 240_000) })
    const envelopes = createEnvelopeFaults({
      random: plan.fork(`envelopes ${peerId}`),
      clock,
      drop: 0.1,
      duplicate: 0.1,
      reorder: 0.1,
    })
    network.handle(TALK, (channel) =>
      listen(channel, `${index} in`, (data) => envelopes(data, (frame) => channel.send(frame))),
    )
    network.subscribe(TOPIC, ({ from, data }) => {
      note(`${index} heard ${data[0]} from ${from}`)
      return plan.chance(0.9) ? 'accept' : 'ignore'
    })
    network.observe({
      connected: (id) => note(`${index} connected ${id}`),
      disconnected: (id) => note(`${index} disconnected ${id}`),
      routable: () =>
        void network.provide(CIDS[index % 3] as Uint8Array, { signal: AbortSignal.abort('no') }).catch(() => {}),
    })
    await network.start()
    lives.set(peerId, network)
  }

  const listen = (channel: Channel, name: string, reply: (data: Uint8Array) => void) => {
    channel.listen({
      data: (data) => {
        bytes += data.length
        note(`${name} got ${data.length}`)
        setImmediate(() => process.nextTick(() => reply(data)))
      },
      drained: () => note(`${name} drained`),
      closed: (error) => note(`${name} closed ${error?.message}`),
    })
  }

  const act = async (): Promise<void> => {
    const network = plan.pick([...lives.values()])
    const other = plan.pick(IDS.filter((id) => id !== network.peerId))
    const controller = new AbortController()
    timeline.schedule(2_000, () => controller.abort(new Error('time is up')))
    const kind = plan.pick(['publish', 'find', 'provide', 'talk', 'talk', 'talk'] as const)
    if (kind === 'publish') note(`published to ${await network.publish(TOPIC, plan.bytes(20))}`)
    else if (kind === 'find') {
      for await (const found of network.findProviders(plan.pick(CIDS), controller)) note(`found ${found.peerId}`)
    } else if (kind === 'provide') await network.provide(plan.pick(CIDS), controller)
    else {
      const target = { peerId: other, addresses: lives.get(other)?.addresses() ?? [] }
      const channel = await network.open(target, TALK, controller)
      listen(channel, 'out', () => {})
      for (let i = plan.int(1, 5); i > 0; i--) channel.send(pattern(plan.int(1, 10_000), i))
      if (plan.chance(0.5)) await channel.close()
      else if (plan.chance(0.3)) channel.abort(new Error('abandoned'))
    }
  }

  const fail = () => {
    const [a = '', b = ''] = plan.shuffle(IDS)
    const kind = plan.pick(['cut', 'delay', 'halfOpen', 'stall', 'partition', 'heal', 'crash', 'gossip'] as const)
    note(`fault ${kind}`)
    if (kind === 'cut' || kind === 'delay' || kind === 'halfOpen')
      world.faults[kind](a, IDS[0] === a ? b : (IDS[0] as string))
    else if (kind === 'stall') world.faults.stall(a)
    else if (kind === 'partition') world.faults.partition([plan.shuffle(IDS).slice(0, plan.int(1, 10))])
    else if (kind === 'heal') world.faults.heal()
    else if (kind === 'gossip') world.faults.gossip({ loss: 0.1, duplicate: 0.1, reorder: 0.1 })
    else {
      world.faults.crash(a)
      lives.delete(a)
      timeline.schedule(500, () => void live(IDS.indexOf(a)))
    }
  }

  for (let index = 0; index < PEERS; index++) await live(index)
  const until = (ms: number, run: () => void) => {
    const again = () => {
      run()
      if (timeline.now() < BUSY_MS) timeline.schedule(plan.between(0, 2 * ms), again)
    }
    timeline.schedule(1_000, again)
  }
  until(20, () => void act().catch((error: Error) => note(`failed ${error.message}`)))
  until(200, fail)
  await timeline.advance('7s')
  const { hits } = world.faults
  for (const network of lives.values()) await network.stop()
  await timeline.advance('1m')
  return { hash: trace.hash(), events: trace.length, bytes, hits, pending: timeline.pending }
}
