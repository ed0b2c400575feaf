import { readFileSync } from 'node:fs'
import { type VerifyingKey, verifyingKey } from './ed25519.ts'
import { type Fault, judge } from './refused.ts'

/** An entry of a vector file as a reader of the file finds it. */
// biome-ignore lint/suspicious/noExplicitAny: the form of each file is told by what the test does with it
export type Read = any

export function read(name: string): Read {
  return JSON.parse(readFileSync(new URL(`../../packages/protocol/vectors/${name}.json`, import.meta.url), 'utf8'))
}

/** Bytes of a vector: hex, pieces of hex, or a text. */
export function bytesOf({ bytes, text }: Read): Uint8Array {
  if (bytes === undefined) return Buffer.from(text, 'utf8')
  const pieces: Read[] = typeof bytes === 'string' ? [bytes] : bytes
  return Buffer.from(
    pieces.map((one) => (typeof one === 'string' ? one : one.repeat.repeat(one.times))).join(''),
    'hex',
  )
}

/** The codes that each fault may be told as; for most there is one. */
const CODES: Record<Exclude<Fault, 'arrival'>, readonly string[]> = {
  frame: ['MALFORMED'],
  size: ['LIMIT_EXCEEDED'],
  tag: ['UNKNOWN_TAG'],
  proof: ['BAD_PROOF'],
  header: ['MALFORMED'],
  version: ['UNSUPPORTED_VERSION'],
  depth: ['DEPTH_EXCEEDED'],
  key: ['BAD_KEY'],
  sender: ['WRONG_SENDER'],
  stranger: ['WRONG_SENDER', 'NOT_ALLOWED'],
  signature: ['BAD_SIGNATURE'],
  binding: ['PAYLOAD_MISMATCH'],
  payload: ['INVALID_PAYLOAD'],
  hop: ['MALFORMED'],
  hops: ['BAD_HOPS'],
  ttl: ['TTL_EXPIRED'],
  handshake: ['MALFORMED'],
  document: ['MALFORMED'],
  expired: ['EXPIRED'],
  network: ['WRONG_NETWORK'],
  identity: ['IDENTITY_MISMATCH'],
  rights: ['NOT_ALLOWED'],
}

/** Whether a refusal with this fault is what others call by that code. */
export const fits = (fault: Fault, why: string, code: string): boolean =>
  fault === 'arrival' ? why.endsWith(` ${code}`) : CODES[fault].includes(code)

/** Vectors of a list that this decoder judges otherwise, in words; an empty list is agreement. */
export function disagreements(list: readonly Read[], decode: (vector: Read) => unknown): string[] {
  return list.flatMap((vector) => {
    const verdict = judge(() => decode(vector))
    const { name, code } = vector
    if (verdict.accepted) return code === undefined ? [] : [`${name}: accepted, not ${code}`]
    return code !== undefined && fits(verdict.fault, verdict.why, code) ? [] : [`${name}: ${verdict.why}, not ${code}`]
  })
}

/** The keys of the vectors by agent id. */
export function knownKeys(): (agent: string) => VerifyingKey | undefined {
  const known = new Map<string, VerifyingKey>(
    read('keys').keys.map((one: Read) => [one.agent_id, verifyingKey(Buffer.from(one.public_key, 'hex'))]),
  )
  return (agent) => known.get(agent)
}
