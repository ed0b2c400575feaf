import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Peer } from '../../src/api.ts'
import { createPeerWith } from '../../src/create-peer.ts'
import { toPem } from '../../src/identity/key-file.ts'
import { machineSeams } from '../../src/machine.ts'
import type { PeerOptions } from '../../src/options.ts'
import type { Seams } from '../../src/seams.ts'
import type { AnyEvent, EventName, EventOf } from '../../src/telemetry/events.ts'
import { keyNamed } from '../identity/support.ts'

export interface RealOptions extends Omit<PeerOptions, 'agentId'> {
  /** Agents that are admitted, by their names: each has the key that `keyNamed` gives. */
  knows: readonly string[]
  prepare?: (peer: Peer) => void
  seams?: Partial<Seams>
}

/** A real peer over loopback with a key that everyone can compute; stopped when the test ends. */
export async function realPeer(agentId: string, options: RealOptions): Promise<Peer> {
  const peer = await startReal(agentId, options)
  onTestFinished(() => peer.stop({ drainMs: 0 }))
  return peer
}

/** The same, for whoever stops it. */
export async function startReal(agentId: string, options: RealOptions): Promise<Peer> {
  const { knows, prepare, seams, ...rest } = options
  const folder = mkdtempSync(join(tmpdir(), 'hermes-test-'))
  const identity = join(folder, 'key.pem')
  writeFileSync(identity, toPem(keyNamed(agentId).seed), { mode: 0o600 })
  const allow = knows.map((agent_id) => ({ agent_id, fingerprint: keyNamed(agent_id).publicKey.fingerprint }))
  const peer = createPeerWith(
    { preset: 'none', identity, trust: { allow }, ...rest, agentId },
    { ...machineSeams(), ...seams },
  )
  peer.events.on('peer.stopped', () => rmSync(folder, { recursive: true, force: true }))
  prepare?.(peer)
  return peer.start()
}

/** All events of a peer so far. */
export function eventsOf(peer: Peer) {
  const all: AnyEvent[] = []
  const stop = peer.events.onAny((event) => all.push(event))
  onTestFinished(stop)
  return {
    all,
    of: <K extends EventName>(type: K) => all.filter((event): event is EventOf<K> & AnyEvent => event.type === type),
  }
}
