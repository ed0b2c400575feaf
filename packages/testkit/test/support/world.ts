import { HermesError } from '@hermes-peer/protocol'
import type { Channel, Network, RecordKinds } from 'hermes-peer'
import { createTimeline } from '../../src/clock/timeline.ts'
import { createRecorder, type Recorder } from '../../src/compliance/recorder.ts'
import { createMemoryWorld, type MemoryWorldOptions } from '../../src/network/world.ts'
import { seededRandom } from '../../src/random/seeded-random.ts'
import { createTrace } from '../../src/trace.ts'
import { peerIdOf } from './peer-id.ts'

/** Records that anybody may write: `<serial>:<text that begins with the id>`. */
const NOTES: RecordKinds = {
  note: {
    mostBytes: 100,
    check(id, value) {
      const [serial = '', text = ''] = Buffer.from(value).toString().split(':')
      if (!text.startsWith(id)) throw new HermesError('IDENTITY_MISMATCH')
      return { serial: Number(serial), expiresAt: Number.MAX_SAFE_INTEGER }
    },
  },
}

export const ECHO = '/test/echo/1'

/** A signal for calls that the test does not mean to end early. */
export const patient = { signal: new AbortController().signal }

/** A world with started peers named by letters; whoever opens a channel to one finds its recorder in `accepted`. */
export async function worldOf(names: string, options: Partial<MemoryWorldOptions> & { seed?: number | string } = {}) {
  const timeline = createTimeline()
  const trace = createTrace()
  const world = createMemoryWorld({ timeline, random: seededRandom(options.seed ?? 1), trace, ...options })
  const accepted: Record<string, Recorder[]> = {}
  const events: string[] = []
  const ids = new Map<string, string>()
  const idOf = (name: string) => {
    const id = ids.get(name) ?? peerIdOf(name)
    ids.set(name, id)
    return id
  }
  const nameOf = (id: string) => [...ids].find(([, one]) => one === id)?.[0] ?? id

  /** A peer that serves ECHO; `prepare` may set what is done with a channel. */
  async function start(name: string, more: { listen?: string[]; bootstrap?: string[] } = {}): Promise<Network> {
    const network = world.network({ peerId: idOf(name), records: NOTES, ...more })
    const channels: Recorder[] = []
    accepted[name] = channels
    network.handle(ECHO, (channel: Channel) => {
      const recorder = createRecorder(channel)
      channels.push(recorder)
      recorder.listen()
    })
    network.observe({
      connected: (id) => void events.push(`${name} connected ${nameOf(id)}`),
      disconnected: (id) => void events.push(`${name} disconnected ${nameOf(id)}`),
      routable: () => void events.push(`${name} routable`),
    })
    await network.start()
    return network
  }

  /** Opens a channel and lets time pass until it is there; both ends' recorders listen. */
  async function channel(from: Network, to: Network): Promise<{ here: Recorder; there: Recorder }> {
    const opened = await timeline.runUntil(from.open({ peerId: to.peerId, addresses: to.addresses() }, ECHO, patient))
    const here = createRecorder(opened)
    here.listen()
    const there = accepted[nameOf(to.peerId)]?.at(-1)
    if (!there) throw new Error('nobody has accepted the channel')
    return { here, there }
  }

  const peers: Record<string, Network> = {}
  for (const name of names) peers[name] = await start(name)
  const peer = (name: string): Network => {
    const network = peers[name]
    if (!network) throw new Error(`no peer ${name}`)
    return network
  }
  return { timeline, world, trace, accepted, events, idOf, start, channel, peer }
}
