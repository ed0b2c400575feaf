import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { peerIdOf, type SigningKey, signingKey, toBase64url } from '@hermes-peer/protocol'
import { type AllowedAgent, loadOrCreateKey } from 'hermes-peer'

/** Somebody with a key: a name, and what others put on their allow list. */
export interface Actor {
  readonly agentId: string
  readonly key: SigningKey
  readonly peerId: string
  readonly listed: AllowedAgent
}

/** The same text gives the same key in every run. */
export function seedOf(text: string): Uint8Array {
  return new Uint8Array(createHash('sha256').update(`hostile tests: ${text}`).digest())
}

export function actor(agentId: string, seed: Uint8Array = seedOf(agentId)): Actor {
  const key = signingKey(seed)
  const { raw } = key.publicKey
  return { agentId, key, peerId: peerIdOf(raw), listed: { agent_id: agentId, key: toBase64url(raw) } }
}

/** A folder of its own for one test; gone with `clear`. */
export interface Place {
  readonly path: string
  /** Where the key of an actor lies as a file. */
  keyFile(of: Actor): string
  clear(): void
}

export function place(): Place {
  const path = mkdtempSync(join(tmpdir(), 'hermes-hostile-'))
  return {
    path,
    keyFile({ agentId, key }) {
      const file = join(path, `${encodeURIComponent(agentId)}.pem`)
      loadOrCreateKey(file, { bytes: () => key.seed, next: () => 0 })
      return file
    },
    clear: () => rmSync(path, { recursive: true, force: true }),
  }
}
