import { subscribe } from 'node:diagnostics_channel'
import { capability, createPeer, type Peer } from 'hermes-peer'
import { z } from 'zod'

/** Several agents in one process, each with a skill of its own; does what its parent says, and ends with it. */
const { folder, bootstrap, agents } = JSON.parse(process.argv[2] as string) as {
  folder: string
  bootstrap: string[]
  agents: string[]
}
const say = (message: Record<string, unknown>) => process.connected && process.send?.(message)
process.on('disconnect', () => process.exit(0))

const traffic = { dht: 0, gossip: 0 }
subscribe('hermes-peer:traffic', (message) => {
  const { kind, messages } = message as { kind: keyof typeof traffic; messages: number }
  traffic[kind] += messages
})

const skillOf = (agentId: string) =>
  capability(`skill_${agentId}`, {
    description: `What only ${agentId} can do.`,
    input: z.object({}),
    output: z.object({ by: z.string() }),
    effects: 'none',
  })

const peers: Peer[] = []
await Promise.all(
  agents.map(async (agentId) => {
    const peer = createPeer({ agentId, folder, bootstrap, journal: false })
    peer.provide(skillOf(agentId), () => ({ by: agentId }))
    peers.push(await peer.start())
  }),
)
say({ type: 'ready', addresses: peers[0]?.addresses })

/** Skills that the agent whose turn it is has not found yet: each look-up makes it dial half of the network, so one after the other. */
let sought: { agentId: string; by: Peer }[] = []
process.on('message', async (message: { do: string; skills?: string[] }) => {
  if (message.do === 'count') return say({ type: 'counted', ...traffic })
  if (message.skills)
    sought = message.skills.map((agentId, index) => ({ agentId, by: peers[index % peers.length] as Peer }))
  const left: typeof sought = []
  const waiting = [...sought]
  const seek = async (): Promise<void> => {
    for (let one = waiting.pop(); one; one = waiting.pop()) {
      const { agentId, by } = one
      if (by.agentId === agentId) continue
      const found = await by.find({ capability: skillOf(agentId).name }).catch(() => [])
      if (!found.some((candidate) => candidate.agentId === agentId && candidate.usable)) left.push(one)
    }
  }
  await seek()
  sought = left
  say({ type: 'found', missing: left.map(({ agentId }) => agentId) })
})
