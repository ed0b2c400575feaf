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

process.on('message', async (message: { do: string; skills?: string[] }) => {
  if (message.do === 'count') return say({ type: 'counted', ...traffic })
  // Each skill is asked for by one of the agents here, in turn.
  const missing: string[] = []
  await Promise.all(
    (message.skills ?? []).map(async (agentId, index) => {
      const peer = peers[index % peers.length] as Peer
      if (peer.agentId === agentId) return
      const found = await peer.find({ capability: skillOf(agentId).name })
      if (!found.some((one) => one.agentId === agentId && one.usable)) missing.push(agentId)
    }),
  )
  say({ type: 'found', missing })
})
