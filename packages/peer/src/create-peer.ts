import './dispose-polyfill.ts'
import type { Peer } from './api.ts'
import { machineSeams } from './machine.ts'
import { type PeerOptions, readOptions } from './options.ts'
import { assemblePeer } from './peer.ts'
import type { Seams } from './seams.ts'

/**
 * A peer that is configured but does nothing yet: `provide` what it can do, then `start`.
 * Throws `INVALID_NAME`, `INVALID_OPTION`, `INVALID_POLICY` or `INVALID_ADDRESS` that names the option.
 */
export function createPeer(options: PeerOptions): Peer {
  return assemblePeer(readOptions(options), machineSeams())
}

/** A peer over other seams than this machine's: what the test kit builds on. */
export function createPeerWith(options: PeerOptions, seams: Seams): Peer {
  return assemblePeer(readOptions(options), seams)
}
