import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPeer, type Peer, type PeerOptions } from 'hermes-peer'

/** For tests that make calls fail on purpose, more often than the breaker would look on. */
export const PATIENT = { breakerRow: 1e9, breakerLeast: 1e9 }

type Options = Omit<PeerOptions, 'agentId'>

/** Agents of one user on one machine: real peers over loopback that share a private folder of their own. */
export interface Team {
  readonly folder: string
  /** A peer that is stopped with the team. */
  peer(agentId: string, options?: Options): Peer
  /** The same, prepared and started. */
  start(agentId: string, prepare?: (peer: Peer) => void, options?: Options): Promise<Peer>
  stop(): Promise<void>
}

/** `shared` are options of all of them. */
export function createTeam(shared: Options = {}): Team {
  const folder = temporaryFolder()
  const peers: Peer[] = []
  const peer = (agentId: string, options: Options = {}): Peer => {
    const made = createPeer({ folder, ...shared, ...options, agentId })
    peers.push(made)
    return made
  }
  return {
    folder,
    peer,
    start(agentId, prepare, options) {
      const made = peer(agentId, options)
      prepare?.(made)
      return made.start()
    },
    async stop() {
      await Promise.all(peers.map((one) => one.stop({ drainMs: 0 })))
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), 'hermes-test-'))
}
