import { afterAll, onTestFinished } from 'vitest'
import { type Actor, type Place, place } from './actors.ts'
import { createRawPeer, type RawPeer, type RawPeerOptions } from './raw-peer.ts'
import { startVictim, type Victim, type VictimOptions } from './victim.ts'

/** Starts who takes part, and stops all of them when it ends, the last first. */
export interface Scene {
  readonly place: Place
  peer(options: Omit<VictimOptions, 'place'>): Promise<Victim>
  raw(as: RawPeerOptions['as'], options?: Omit<RawPeerOptions, 'as'>): Promise<RawPeer>
  /** What escaped in this process since the first of them was started. */
  readonly escaped: readonly unknown[]
}

/** The scene of the test that runs. */
export function scene(): Scene {
  const { world, clear } = build()
  onTestFinished(clear)
  return world
}

/** One scene for all tests of the suite that is being described. */
export function sharedScene(): Scene {
  const { world, clear } = build()
  afterAll(clear)
  return world
}

function build(): { world: Scene; clear: () => Promise<void> } {
  const stops: (() => Promise<unknown>)[] = []
  const escaped: unknown[] = []
  const onEscape = (reason: unknown) => void escaped.push(reason)
  // Made when it is needed: a suite that is passed over leaves nothing behind.
  let own: Place | undefined
  const begun = (): Place => {
    if (own) return own
    process.on('unhandledRejection', onEscape).on('uncaughtException', onEscape)
    own = place()
    return own
  }
  const world: Scene = {
    get place() {
      return begun()
    },
    async peer(options) {
      const started = await startVictim({ place: begun(), ...options })
      stops.push(() => started.peer.stop({ drainMs: 0 }))
      return started
    },
    async raw(as, options = {}) {
      begun()
      const started = await createRawPeer({ as, ...options })
      stops.push(() => started.stop())
      return started
    },
    escaped,
  }
  const clear = async () => {
    for (const stop of stops.reverse()) await stop()
    process.off('unhandledRejection', onEscape).off('uncaughtException', onEscape)
    own?.clear()
  }
  return { world, clear }
}

/** An honest peer with the key of an actor that is linked to the victim, and served by it. */
export async function honest(world: Scene, as: Actor, victim: Victim): Promise<Victim> {
  return world.peer({ as, allow: [victim.self], bootstrap: [victim.address] })
}
