import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { arrivalVectors } from './arrivals.ts'
import { chainVectors } from './chains.ts'
import { delegationVectors } from './delegations.ts'
import { documentVectors } from './documents.ts'
import { errorVectors } from './errors.ts'
import { frameVectors } from './frames.ts'
import { handshakeVectors } from './handshake.ts'
import { headerVectors } from './headers.ts'
import { hopVectors } from './hops.ts'
import { keyVectors } from './keys.ts'
import { merkleVectors } from './merkle.ts'
import { nameVectors } from './names.ts'
import { jsonPayloadVectors } from './payload-json.ts'
import { msgpackPayloadVectors } from './payload-msgpack.ts'
import { shapeVectors } from './payload-shapes.ts'
import { recordVectors } from './records.ts'
import type { Vector } from './scene.ts'
import { signingVectors } from './signing.ts'
import { streamVectors } from './streams.ts'

const FILES: Record<string, () => Vector> = {
  keys: keyVectors,
  names: nameVectors,
  frames: frameVectors,
  headers: headerVectors,
  'payload-json': jsonPayloadVectors,
  'payload-msgpack': msgpackPayloadVectors,
  'payload-shapes': shapeVectors,
  signing: signingVectors,
  merkle: merkleVectors,
  hops: hopVectors,
  streams: streamVectors,
  handshake: handshakeVectors,
  documents: documentVectors,
  chains: chainVectors,
  delegations: delegationVectors,
  records: recordVectors,
  errors: errorVectors,
  arrivals: arrivalVectors,
}

export const FOLDER = join(import.meta.dirname, '../../vectors')

/** The text of each vector file by its name. Keys, ids and times are fixed, so it is the same in every run. */
export function vectorFiles(): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(FILES).map(([name, vectors]) => [`${name}.json`, `${JSON.stringify(vectors(), null, 1)}\n`]),
  )
}

// node --conditions=@hermes-peer/source --import tsx packages/protocol/test/vectors/generate.ts
if (process.argv[1] === import.meta.filename) {
  for (const [name, text] of vectorFiles()) writeFileSync(join(FOLDER, name), text)
}
