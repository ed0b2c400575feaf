import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type ErrorCode, type HermesError, isHermesError } from '@hermes-peer/protocol'
import { createPeer, type Peer, type PeerOptions } from 'hermes-peer'
import { temporaryFolder } from '../calls/support/team.ts'

/** What a case may use: two peers that run and know each other, and an empty folder. */
export interface Scene {
  /** Provides `odd` and `add`. */
  readonly worker: Peer
  readonly desk: Peer
  readonly folder: string
}

/** One wrong input: what is wrong, the code it gets, and where the message names the field and the remedy. */
export interface Case {
  readonly name: string
  readonly code: ErrorCode
  /** The field, path or value that the message must name. */
  readonly names: RegExp | string
  /** What to do about it, in the hint or the message. Default: the hint says something at all. */
  readonly remedy?: RegExp | string
  run(scene: Scene): unknown
}

export interface Edge {
  readonly edge: string
  readonly cases: readonly Case[]
}

/** The error that a case ends with. */
export async function failureOf(run: () => unknown): Promise<HermesError> {
  try {
    await run()
  } catch (error) {
    if (isHermesError(error)) return error
    throw new Error(`not a HermesError: ${String(error)}`, { cause: error })
  }
  throw new Error('it was accepted')
}

/** Starts a peer with these options in a folder of its own; it must not run afterwards. */
export async function startWith(options: Partial<PeerOptions>, folder?: string): Promise<void> {
  const own = folder ?? temporaryFolder()
  const peer = createPeer({ agentId: 'wrong', folder: own, ...options })
  const failed = await peer.start().then(
    () => undefined,
    (error: unknown) => ({ error }),
  )
  await peer.stop()
  if (folder === undefined) rmSync(own, { recursive: true, force: true })
  if (failed === undefined) return
  if (peer.addresses.length > 0) throw new Error('a failed start left it running')
  throw failed.error
}

/** A file with that content; its folders are made. */
export function fileIn(folder: string, name: string, content: string | Uint8Array, mode = 0o600): string {
  const path = join(folder, name)
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  writeFileSync(path, content, { mode })
  return path
}

/** A path that cannot be made, by nobody: it lies below a file. */
export function belowAFile(folder: string): string {
  return join(fileIn(folder, 'file', ''), 'below')
}
