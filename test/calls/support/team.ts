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

/** Resolves when the condition holds; looks again with every turn of the event loop that has something to do. */
export async function until(condition: () => boolean, what = 'the condition', ms = 10_000): Promise<void> {
  const end = performance.now() + ms
  while (!condition()) {
    if (performance.now() > end) throw new Error(`${what} did not come true within ${ms} ms`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** A promise, and the ways to settle it. */
export function deferred<T = void>() {
  let resolve = (_: T): void => undefined
  let reject = (_: unknown): void => undefined
  const promise = new Promise<T>((yes, no) => {
    resolve = yes
    reject = no
  })
  promise.catch(() => undefined)
  return { promise, resolve, reject }
}
