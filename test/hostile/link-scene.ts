import { beforeAll, expect } from 'vitest'
import { actor } from './actors.ts'
import { newId } from './craft.ts'
import { dialLink, type LinkPlan, type RawLink } from './raw-link.ts'
import type { RawPeer } from './raw-peer.ts'
import { honest, sharedScene } from './scene.ts'
import { echo, type Victim } from './victim.ts'

export const victimKey = actor('victim')
export const honestKey = actor('honest')
export const hostileKey = actor('hostile')

/** One victim for all tests of a suite, an honest caller of it, and a hostile peer that is admitted and links to it by raw bytes. */
export function linkScene() {
  const world = sharedScene()
  let made: { victim: Victim; good: Victim; raw: RawPeer } | undefined
  const scene = () => {
    if (!made) throw new Error('the peers of the suite are not there before its tests')
    return made
  }
  beforeAll(async () => {
    const victim = await world.peer({ as: victimKey, allow: [honestKey, hostileKey] })
    const good = await honest(world, honestKey, victim)
    made = { victim, good, raw: await world.raw(hostileKey) }
  })
  return {
    world,
    peers: scene,
    /** A new link of the hostile peer. */
    async fresh(plan: LinkPlan = {}): Promise<RawLink> {
      const { victim, raw } = scene()
      victim.mark()
      return dialLink(raw, hostileKey, victim.address, plan)
    },
    async drop(link: RawLink): Promise<void> {
      link.reset()
      await scene().victim.until('link.down', ({ agentId }) => agentId === 'hostile')
    },
    /** The victim still serves the honest caller, once, and nothing has escaped. */
    async untouched(): Promise<void> {
      const { victim, good } = scene()
      const before = victim.served.length
      const value = newId('msg')
      expect(await good.peer.call(echo, value)).toBe(value)
      expect(victim.served.slice(before)).toEqual([value])
      expect(victim.of('window.gap')).toEqual([])
      expect(world.escaped).toEqual([])
    },
  }
}
