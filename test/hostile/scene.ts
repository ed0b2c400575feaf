import { onTestFinished } from 'vitest'
import { type Actor, place } from './actors.ts'
import { createRawPeer, type RawPeer, type RawPeerOptions } from './raw-peer.ts'
import { startVictim, type Victim, type VictimOptions } from './victim.ts'

/** Starts who takes part in one test, and stops all of them when it ends, the last first. */
export interface Scene {
  readonly place: ReturnType<typeof place>
  peer(options: Omit<VictimOptions, 'place'>): Promise<Victim>
  raw(as: RawPeerOptions['as'], options?: Omit<RawPeerOptions, 'as'>): Promise<RawPeer>
  /** What escaped in this process since the scene began. */
  readonly escaped: readonly unknown[]
}

/** `ends` says when it is over; default: with the test that runs. */
export function scene(ends: (clear: () => Promise<void>) => void = onTestFinished): Scene {
  const own = place()
  const stops: (() => Promise<unknown>)[] = []
  const escaped: unknown[] = []
  const onEscape = (reason: unknown) => void escaped.push(reason)
  process.on('unhandledRejection', onEscape).on('uncaughtException', onEscape)
  ends(async () => {
    for (const stop of stops.reverse()) await stop()
    process.off('unhandledRejection', onEscape).off('uncaughtException', onEscape)
    own.clear()
  })
  return {
    place: own,
    async peer(options) {
      const started = await startVictim({ place: own, ...options })
      stops.push(() => started.peer.stop())
      return started
    },
    async raw(as, options = {}) {
      const started = await createRawPeer({ as, ...options })
      stops.push(() => started.stop())
      return started
    },
    escaped,
  }
}

/** An honest peer with the key of an actor that is linked to the victim, and served by it. */
export async function honest(world: Scene, as: Actor, victim: Victim): Promise<Victim> {
  return world.peer({ as, allow: [victim.self], bootstrap: [victim.address] })
}
