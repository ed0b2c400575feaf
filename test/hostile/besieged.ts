import { beforeAll, expect } from 'vitest'
import { type Actor, actor } from './actors.ts'
import { eventually } from './eventually.ts'
import type { Attack } from './handshake-attacks.ts'
import { honest, type Scene, sharedScene } from './scene.ts'
import { echo, type Victim } from './victim.ts'

export const victimKey = actor('victim')
export const honestKey = actor('honest')
export const hostileKey = actor('hostile')
export const strangerKey = actor('stranger')

/** A victim that serves an honest peer while its handshake is attacked; shared by all tests of a suite. */
export interface Siege {
  readonly world: Scene
  readonly victim: Victim
  /** By the hostile agent, under a key that the victim admits. */
  readonly attack: Attack
  /** The same by somebody who is not admitted. */
  by(self: Actor): Promise<Attack>
  /** Nothing is left of an attack: the honest link still stands, its sequence goes on, and no other has come up. */
  untouched(): Promise<void>
}

export function besieged(): Siege {
  const world = sharedScene()
  let victim: Victim
  let good: Victim
  let attack: Attack
  let calls = 0

  beforeAll(async () => {
    victim = await world.peer({ as: victimKey, allow: [honestKey, hostileKey] })
    good = await honest(world, honestKey, victim)
    attack = { victim, raw: await world.raw(hostileKey), self: hostileKey, other: honestKey }
  })

  return {
    world,
    get victim() {
      return victim
    },
    get attack() {
      return attack
    },
    by: async (self) => ({ ...attack, raw: await world.raw(self), self }),
    async untouched() {
      const links = victim.links
      const before = victim.served.length
      const mark = ++calls
      expect(await good.peer.call(echo, mark)).toBe(mark)
      expect(victim.served.slice(before)).toEqual([mark])
      expect(links).toBe(1)
      expect(victim.peer.balance()).toEqual({ calls: 0, succeeded: 0, failed: 0, inFlight: 0, failovers: 0 })
      expect(victim.of('window.gap')).toEqual([])
      expect(victim.of('directory.joined')).toEqual([])
      expect(victim.of('directory.left')).toEqual([])
      expect(world.escaped).toEqual([])
      await eventually(
        () =>
          attack.raw.connections.every(({ streams }) =>
            streams.every(({ protocol }) => protocol !== '/hermes/link/1.0.0'),
          ),
        'the streams of the attack to be gone',
      )
      for (const connection of attack.raw.connections) connection.abort(new Error('done'))
    },
  }
}
