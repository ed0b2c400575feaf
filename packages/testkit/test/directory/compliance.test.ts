import { memoryDirectory, systemRandom } from 'hermes-peer'
import { describe, expect, it } from 'vitest'
import {
  createMemoryWorld,
  createTimeline,
  type DirectoryHome,
  directoryCompliance,
  manualClock,
  seededRandom,
} from '../../src/index.ts'
import { DIRECTORY_MISTAKES, type DirectoryMistake, faultyDirectory } from '../support/faulty-directory.ts'
import { peerIdOf } from '../support/peer-id.ts'

function home(mistake?: DirectoryMistake): () => Promise<DirectoryHome> {
  return async () => {
    const factory = memoryDirectory()
    const clock = manualClock()
    const world = createMemoryWorld({ timeline: createTimeline(), random: seededRandom(1) })
    return {
      async member(name) {
        const peerId = peerIdOf(name)
        const source = factory({
          networkName: 'default',
          peerId,
          clock,
          random: systemRandom(),
          network: world.network({ peerId }),
          seeded: true,
          report: () => undefined,
        })
        return {
          source: mistake ? faultyDirectory(source, peerId, mistake) : source,
          self: { agentId: name, peerId, addresses: [`/ip4/127.0.0.1/tcp/4001/p2p/${peerId}`] },
        }
      },
      pause: () => new Promise((resolve) => setImmediate(resolve)),
      looks: 5,
      lease: { ms: 60_000, pass: (ms) => clock.timeline.advance(ms) },
      outage: {
        begin: async () => factory.reachable(false),
        end: async () => factory.reachable(true),
        enough: () => AbortSignal.timeout(1000),
      },
      dispose: async () => undefined,
    }
  }
}

describe('the compliance suite of directories', () => {
  it.each(DIRECTORY_MISTAKES)('catches one that %s', async (mistake) => {
    const caught: string[] = []
    for (const { name, run } of directoryCompliance(home(mistake))) {
      await run().catch(() => caught.push(name))
    }
    expect(caught).not.toEqual([])
  })
})
