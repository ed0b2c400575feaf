import type { Channel } from 'hermes-peer'
import type { MakeChannelPair } from '../../src/compliance/channel.ts'
import { ECHO, patient, worldOf } from './world.ts'

/** Pairs of channel ends of a memory network of their own; `change` may replace the ends. */
export function memoryPair(seed: number | string, change = (channel: Channel): Channel => channel): MakeChannelPair {
  return async (accept) => {
    const { timeline, world, peer, idOf } = await worldOf('a', { seed })
    const b = world.network({ peerId: idOf('b') })
    b.handle(ECHO, (channel) => accept(change(channel)))
    await b.start()
    const opening = peer('a').open({ peerId: b.peerId, addresses: b.addresses() }, ECHO, patient)
    return {
      channel: change(await timeline.runUntil(opening)),
      until: (condition) => timeline.runUntil(condition),
      dispose: async () => {
        await peer('a').stop()
        await b.stop()
      },
    }
  }
}
