import { ascii, cursor, domain, join, partOf } from './bytes.ts'
import { sha256, type VerifyingKey } from './ed25519.ts'
import { isMap } from './compact.ts'
import { type JsonMap, parseJson } from './json.ts'
import { Refused } from './refused.ts'

const MAX_MESSAGE = 8 * 1024

export interface RawMessage {
  json: JsonMap
  /** part(JSON) as received, without the signature. */
  part: Uint8Array
  signature?: Uint8Array
}

/** One handshake message; proof and welcome end with a signature, hello and challenge do not. */
export function readMessage(bytes: Uint8Array, signed: boolean): RawMessage {
  const at = cursor(bytes, 'handshake')
  const body = at.part(MAX_MESSAGE)
  const signature = signed ? at.take(64) : undefined
  at.end()
  const json = parseJson(body, 'handshake')
  if (!isMap(json)) throw new Refused('handshake', 'not an object')
  return { json, part: partOf(body), ...(signature === undefined ? {} : { signature }) }
}

export interface Connection {
  network: string
  initiator: string
  responder: string
}

/** SHA-256 of domain, network, protocol id, both peer ids with their roles and the raw messages, each as part(). */
export function transcript(connection: Connection, messages: Uint8Array[]): Uint8Array {
  const pieces = [
    ascii('hermes-peer/transcript/1'),
    ascii(connection.network),
    ascii('/hermes/link/1.0.0'),
    ascii('I'),
    ascii(connection.initiator),
    ascii('R'),
    ascii(connection.responder),
    ...messages,
  ]
  return sha256(...pieces.map(partOf))
}

export function signedTranscript(key: VerifyingKey, what: 'proof' | 'welcome', hash: Uint8Array, signature: Uint8Array) {
  return key.verifies(join(domain(what), hash), signature)
}
