import { capability, type HermesError, isHermesError } from '@hermes-peer/protocol'
import { type TestNetworkOptions, testNetwork } from '@hermes-peer/testkit'
import { onTestFinished } from 'vitest'
import * as z from 'zod'
import type { CallContext, Peer } from '../../src/api.ts'
import type { PeerOptions } from '../../src/options.ts'
import type { PolicyDocument, ServeRule } from '../../src/policy/document.ts'
import type { AnyEvent, EventName, EventOf } from '../../src/telemetry/events.ts'

const shape = {
  description: 'Pays.',
  input: z.object({ amount: z.number(), to: z.string().default('nobody'), more: z.unknown().optional() }),
  output: z.object({ by: z.string() }),
  effects: 'once',
} as const

export const pay = capability('pay', shape)
export const report = capability('report.week', { ...shape, effects: 'none' })
export const draft = capability('draft', { ...shape, yields: z.string(), effects: 'none' })

/** Peers that all know each other, each with its own policy. */
export async function agents(
  policies: Readonly<Record<string, PolicyDocument | undefined>>,
  {
    serve = {},
    options = {},
    ...network
  }: TestNetworkOptions & {
    serve?: Readonly<Record<string, (input: { amount: number }, ctx: CallContext<typeof pay>) => unknown>>
    options?: Readonly<Record<string, Omit<PeerOptions, 'agentId'>>>
  } = {},
) {
  const net = testNetwork(network)
  onTestFinished(() => net[Symbol.asyncDispose]())
  const events: [string, AnyEvent][] = []
  net.onEvent((agentId, event) => events.push([agentId, event]))
  const started: { by: string; capability: string; input: unknown }[] = []
  const launch = (id: string) =>
    net.until(
      net.launch(
        id,
        (peer) => {
          for (const contract of [pay, report]) {
            peer.provide(contract, ((input: { amount: number }, ctx: CallContext<typeof pay>) => {
              started.push({ by: id, capability: contract.name, input })
              return serve[id]?.(input, ctx) ?? { by: id }
            }) as never)
          }
          peer.provide(draft, async function* (input) {
            started.push({ by: id, capability: 'draft', input })
            yield 'one'
            return { by: id }
          })
        },
        { ...options[id], ...(policies[id] === undefined ? {} : { policy: policies[id] }) },
      ),
    )
  const peers: Record<string, Peer> = {}
  for (const id of Object.keys(policies)) peers[id] = await launch(id)
  await net.advance('25s')
  return {
    net,
    launch,
    peer: (id: string) => peers[id] as Peer,
    started,
    of: <K extends EventName>(agentId: string, type: K): EventOf<K>[] =>
      events.filter(([id, event]) => id === agentId && event.type === type).map(([, event]) => event as never),
    async failure(work: Promise<unknown>): Promise<HermesError> {
      try {
        await net.until(work)
      } catch (error) {
        if (isHermesError(error)) return error
        throw error
      }
      throw new Error('it succeeded')
    },
    async until(condition: () => boolean, what: string) {
      for (let waited = 0; !condition(); waited += 10) {
        if (waited > 120_000) throw new Error(`${what} did not come true within two minutes`)
        await net.advance(10)
      }
    },
  }
}

export const allow = (principal: string, name: string, more: Partial<ServeRule> = {}): ServeRule => ({
  principal,
  capability: name,
  ...more,
})
