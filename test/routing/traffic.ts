import { type TestNetwork, testNetwork } from '@hermes-peer/testkit'
import { capability, type Peer } from 'hermes-peer'
import { z } from 'zod'

export const contractOf = (maxConcurrency?: number) =>
  capability('work', {
    description: 'Works for a while.',
    input: z.number(),
    output: z.string(),
    effects: 'none',
    ...(maxConcurrency === undefined ? {} : { constraints: { maxConcurrency } }),
  })
export const work = contractOf()

/** Providers of one capability, callers, and who ran what. */
export interface Traffic extends AsyncDisposable {
  readonly net: TestNetwork
  readonly runs: { readonly by: string; readonly at: number }[]
  /** Most handlers that ran at the same time, by provider. */
  readonly most: Map<string, number>
  provider(agentId: string, places: number, ms?: number): Promise<Peer>
  /** So many calls a second from each caller, evenly spread, for that long; failed ones are counted. */
  drive(callers: readonly Peer[], perSecond: number, seconds: number): Promise<{ failed: number }>
  /** Share of the runs since virtual time `since`, by provider. */
  shares(since: number, until?: number): Record<string, number>
}

export function traffic(seed: number | string): Traffic {
  const net = testNetwork({ seed })
  const runs: { by: string; at: number }[] = []
  const most = new Map<string, number>()
  return {
    net,
    runs,
    most,
    async provider(agentId, places, ms = 100) {
      let running = 0
      return net.until(
        net.launch(
          agentId,
          (peer) =>
            peer.provide(contractOf(places), async () => {
              running++
              most.set(agentId, Math.max(most.get(agentId) ?? 0, running))
              runs.push({ by: agentId, at: net.timeline.now() })
              // Work takes differently long, as work does.
              await net.sleep(ms * (0.5 + net.random.next()))
              running--
              return agentId
            }),
          { journal: false },
        ),
      )
    },
    async drive(callers, perSecond, seconds) {
      let failed = 0
      const open = new Set<Promise<unknown>>()
      const gap = 1000 / (perSecond * callers.length)
      for (let i = 0; i < perSecond * callers.length * seconds; i++) {
        const call = (callers[i % callers.length] as Peer).call(work, i).catch(() => {
          failed++
        })
        open.add(call)
        void call.finally(() => open.delete(call))
        await net.advance(gap)
      }
      await net.until(Promise.all(open))
      return { failed }
    },
    shares(since, until = Number.POSITIVE_INFINITY) {
      const counted = runs.filter(({ at }) => at >= since && at < until)
      const found: Record<string, number> = {}
      for (const { by } of counted) found[by] = (found[by] ?? 0) + 1 / counted.length
      return found
    },
    [Symbol.asyncDispose]: () => net[Symbol.asyncDispose](),
  }
}
