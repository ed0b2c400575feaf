import { type Actor, actor } from './actors.ts'
import { capabilityEntry, dialLink, type Heard, type RawLink } from './raw-link.ts'
import type { Scene } from './scene.ts'
import type { Victim } from './victim.ts'

export const victimKey = actor('victim')
export const hostileKey = actor('hostile')
export const otherKey = actor('other')

/** A victim that knows hostile peers as those who can `work`, and their links. */
export async function provided(
  world: Scene,
  by: readonly Actor[] = [hostileKey],
  options: Partial<Parameters<Scene['peer']>[0]> = {},
): Promise<{ victim: Victim; links: readonly RawLink[]; link: RawLink }> {
  const victim = await world.peer({ as: victimKey, allow: by, ...options })
  const links: RawLink[] = []
  for (const self of by) {
    const capabilities = [capabilityEntry('work')]
    links.push(await dialLink(await world.raw(self), self, victim.address, { capabilities }))
    await victim.until('directory.changed', ({ agentId }) => agentId === self.agentId)
  }
  victim.mark()
  return { victim, links, link: links[0] as RawLink }
}

export const isWork = ({ header }: Heard): boolean =>
  header.target_capability === 'work' && header.message_type === 'request'
export const isCancel = ({ header }: Heard): boolean => header.message_type === 'cancel'

/** A call whose end can be looked at without waiting for it. */
export interface Watched {
  ended: boolean
  value: unknown
  error: unknown
  readonly promise: Promise<unknown>
}

export function watched(promise: Promise<unknown>): Watched {
  const call: Watched = { ended: false, value: undefined, error: undefined, promise: promise.catch(() => undefined) }
  promise.then(
    (value) => Object.assign(call, { ended: true, value }),
    (error: unknown) => Object.assign(call, { ended: true, error }),
  )
  return call
}

/** Everything that was sent before has been handled once this is answered. */
export async function settled(link: RawLink): Promise<void> {
  await link.answerTo(link.request('echo', 'settled', { ordered: false }))
}
