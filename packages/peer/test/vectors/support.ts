import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type PublicKey, publicKey, type SigningKey, signingKey } from '@hermes-peer/protocol'

/** An entry of a vector file as a reader of the file finds it. */
// biome-ignore lint/suspicious/noExplicitAny: the form of each file is told by what the test does with it
export type Read = any

const { resolve } = createRequire(import.meta.url)

export function read(name: string): Read {
  return JSON.parse(readFileSync(resolve(`@hermes-peer/protocol/vectors/${name}.json`), 'utf8'))
}

export const unhex = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'hex'))

/** The signing keys of the vectors by agent id. */
export function keys(): ReadonlyMap<string, SigningKey> {
  return new Map(read('keys').keys.map((one: Read) => [one.agent_id, signingKey(unhex(one.seed))]))
}

export function publicKeys(): (agentId: string) => PublicKey | undefined {
  const known = new Map<string, PublicKey>(
    read('keys').keys.map((one: Read) => [one.agent_id, publicKey(unhex(one.public_key))]),
  )
  return (agentId) => known.get(agentId)
}
