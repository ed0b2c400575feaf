import type { DirectoryMember } from '@hermes-peer/testkit'
import type { Clock } from '../../../src/clock.ts'
import { systemClock } from '../../../src/clock.ts'
import type { DirectoryContext, DirectoryFactory } from '../../../src/directory/sources/source.ts'
import { systemRandom } from '../../../src/random.ts'
import { peerIdNamed } from '../support.ts'

/** What a peer of that name would give to a source. */
export function contextOf(name: string, more: Partial<DirectoryContext> = {}): DirectoryContext {
  const nowhere = () => Promise.reject(new Error('this source needs no network'))
  return {
    networkName: 'default',
    peerId: peerIdNamed(name),
    clock: systemClock() as Clock,
    random: systemRandom(),
    network: { provide: nowhere, unprovide: nowhere, findProviders: nowhere as never },
    seeded: true,
    report: () => undefined,
    ...more,
  }
}

/** A peer of that name at a directory, its source open. */
export async function memberOf(
  factory: DirectoryFactory,
  name: string,
  more: Partial<DirectoryContext> = {},
): Promise<DirectoryMember> {
  const context = contextOf(name, more)
  const source = factory(context)
  await source.open?.()
  const self = { agentId: name, peerId: context.peerId, addresses: [`/ip4/127.0.0.1/tcp/4001/p2p/${context.peerId}`] }
  return { source, self }
}
