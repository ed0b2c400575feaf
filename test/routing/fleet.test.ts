import { type TestNetwork, testNetwork } from '@hermes-peer/testkit'
import { capability, type Peer } from 'hermes-peer'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'

const TIER = process.env.HERMES_TEST_TIER

const offer = (agentId: string) =>
  capability(`skill_${agentId}`, {
    description: `What only ${agentId} can do.`,
    input: z.object({}),
    output: z.object({ by: z.string() }),
    effects: 'none',
  })

/** `size` peers that start in the same instant, each with a capability of its own; they know the address of one that runs. */
async function join(net: TestNetwork, size: number): Promise<Map<string, Peer>> {
  await net.peer('first', { journal: false })
  const ids = Array.from({ length: size }, (_, index) => `p${index}`)
  const started = ids.map((id) =>
    net.launch(id, (peer) => void peer.provide(offer(id), async () => ({ by: id })), { journal: false }),
  )
  const peers = await net.until(Promise.all(started))
  return new Map(ids.map((id, index) => [id, peers[index] as Peer]))
}

/** Pairs (who looks, whose capability) without a usable answer; the first `looking` look for all. */
async function unfound(peers: ReadonlyMap<string, Peer>, looking: number): Promise<string[]> {
  const missing: string[] = []
  await Promise.all(
    [...peers].slice(0, looking).flatMap(([id, peer]) =>
      [...peers.keys()].map(async (other) => {
        if (other === id) return
        const found = await peer.find({ capability: offer(other).name })
        if (!found.some(({ agentId, usable }) => agentId === other && usable)) missing.push(`${id} → ${other}`)
      }),
    ),
  )
  return missing
}

describe('peers that join all at once', () => {
  // Whoever is asked about is linked to: with 50 in one process that is a minute of signatures when all look for all.
  it.each([
    [10, 10],
    [20, 20],
    [50, TIER === undefined ? 4 : 50],
  ])('%i: %i of them find all others within 10 s', { timeout: 180_000 }, async (size, looking) => {
    await using net = testNetwork({ seed: size })
    const begun = net.timeline.now()
    const peers = await join(net, size)
    let missing = await net.until(unfound(peers, looking))
    while (missing.length > 0 && net.timeline.now() - begun < 10_000) {
      await net.advance('500ms')
      missing = await net.until(unfound(peers, looking))
    }
    const took = net.timeline.now() - begun
    expect(missing).toEqual([])
    expect(took).toBeLessThan(10_000)

    // What is found is really there.
    const ids = [...peers.keys()]
    const calls = ids.map((id, index) => peers.get(id)?.call(offer(ids[(index + 1) % size] as string), {}))
    expect((await net.until(Promise.all(calls))).map((answer) => answer?.by)).toEqual([...ids.slice(1), ids[0]])
    for (const peer of peers.values()) expect(peer.balance()).toMatchObject({ succeeded: 1, failed: 0 })

    // Introductions to those who came last are over.
    await net.advance('5s')
    const minute = { sent: 0, doubted: 0 }
    net.onEvent((_, { type }) => {
      if (type === 'presence.sent') minute.sent++
      if (type === 'directory.suspect' || type === 'directory.offline') minute.doubted++
    })
    await net.advance('60s')
    const sent = minute.sent / (size + 1)
    console.log(`${size} joined in ${Math.round(took)} ms; in the next minute each sent ${sent.toFixed(1)} reports`)
    // One in 10 s ± 10 %, however many there are, and that is enough for all to know of all.
    expect(sent).toBeGreaterThan(5)
    expect(sent).toBeLessThan(7)
    expect(minute.doubted).toBe(0)
  })
})
