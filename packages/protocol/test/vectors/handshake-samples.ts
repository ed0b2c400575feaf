import {
  type Challenge,
  concat,
  encodeHello,
  encodeProof,
  type Hello,
  LINK_PROTOCOL,
  type Proof,
  peerIdOf,
  sha256,
  sha256Hex,
  signTranscript,
  utf8,
  type Welcome,
} from '../../src/index.ts'
import { KEYS, type Name, NETWORK, NOW } from './scene.ts'

export function helloOf(name: Name, changes: Partial<Hello> = {}): Hello {
  return {
    versions: ['1.0'],
    content_types: ['application/json', 'application/msgpack'],
    features: [],
    network: NETWORK,
    nonce: sha256(utf8(`nonce of ${name}`)),
    agent_id: name,
    key: KEYS[name].publicKey.raw,
    certificates: [],
    limits: { max_envelope_bytes: 1_048_576, max_in_flight: 256 },
    time: NOW,
    ...changes,
  }
}

export const CHOSEN: Challenge['chosen'] = {
  version: '1.0',
  content_types: ['application/json', 'application/msgpack'],
  features: [],
}

export function challengeOf(name: Name, changes: Partial<Challenge> = {}): Challenge {
  return { ...helloOf(name, { time: NOW + 20 }), chosen: CHOSEN, ...changes }
}

export const PROOF: Proof = {
  epoch: NOW - 60_000,
  next_sequence: 1,
  seen_epoch: NOW - 50_000,
  manifest_digest: sha256Hex(utf8('manifest of pm')),
}

export const WELCOME: Welcome = {
  epoch: NOW - 50_000,
  next_sequence: 42,
  seen_epoch: NOW - 60_000,
  manifest_digest: sha256Hex(utf8('manifest of coder')),
  link_id: '0123456789abcdef',
}

/** A whole handshake between `pm` (I) and `coder` (R), with its transcripts and signatures. */
export function conversation(): {
  hello: Uint8Array
  challenge: Uint8Array
  proof: Uint8Array
  welcome: Uint8Array
  context: Context
} {
  const context: Context = {
    network: NETWORK,
    protocol: LINK_PROTOCOL,
    initiator: peerIdOf(KEYS.pm.publicKey.raw),
    responder: peerIdOf(KEYS.coder.publicKey.raw),
  }
  const hello = encodeHello(helloOf('pm'))
  const challenge = encodeHello(challengeOf('coder'))
  const three = encodeProof(PROOF)
  const proof = concat([three, signTranscript('proof', { ...context, messages: [hello, challenge, three] }, KEYS.pm)])
  const four = encodeProof(WELCOME)
  const all = [hello, challenge, proof, four]
  const welcome = concat([four, signTranscript('welcome', { ...context, messages: all }, KEYS.coder)])
  return { hello, challenge, proof, welcome, context }
}

export interface Context {
  network: string
  protocol: string
  initiator: string
  responder: string
}
