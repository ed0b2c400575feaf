import {
  concat,
  encodeHello,
  encodeProof,
  type Hello,
  type Proof,
  part,
  peerIdOf,
  type SigningKey,
  signTranscript,
  toHex,
  utf8,
} from '../../src/index.ts'
import { challengeOf, conversation, helloOf, PROOF, WELCOME } from './handshake-samples.ts'
import { KEYS, type Name, NOW, type Vector } from './scene.ts'

const MINUTES_10 = 600_000
const url = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64url')
const peerOf = (name: Name) => peerIdOf(KEYS[name].publicKey.raw)

function decision(name: string, bytes: Uint8Array, code?: string, more: Vector = {}): Vector {
  return { name, bytes: toHex(bytes), ...(code === undefined ? {} : { code }), ...more }
}

/** Bytes of a hello whose JSON need not be right. */
const rawHello = (changes: object) => {
  const hello = helloOf('pm')
  const fields = { ...hello, nonce: url(hello.nonce), key: url(hello.key), ...changes }
  return part(utf8(JSON.stringify(fields)))
}

/** What `coder` makes of the hello of a connection with `pm` (or with `remote`). */
function hellos(): Vector[] {
  const hello = (changes: Partial<Hello> = {}, name: Name = 'pm') => encodeHello(helloOf(name, changes))
  const neutral = Uint8Array.from({ length: 32 }, (_, index) => (index === 0 ? 1 : 0))
  const now = NOW + 20
  return [
    decision('a hello', hello()),
    decision('one version of several is spoken', hello({ versions: ['2.0', '1.0'] })),
    decision('a clock 10 minutes ahead', hello({ time: now + MINUTES_10 })),
    decision('a clock 10 minutes behind', hello({ time: now - MINUTES_10 })),
    decision('of another network', hello({ network: 'other' }), 'HANDSHAKE_REFUSED'),
    decision('no version in common', hello({ versions: ['2.0', '0.9'] }), 'UNSUPPORTED_VERSION'),
    decision('no version at all', hello({ versions: [] }), 'UNSUPPORTED_VERSION'),
    decision('a clock further ahead', hello({ time: now + MINUTES_10 + 1 }), 'CLOCK_SKEW', {
      offset_ms: MINUTES_10 + 1,
    }),
    decision('a clock further behind', hello({ time: now - MINUTES_10 - 1 }), 'CLOCK_SKEW', {
      offset_ms: -MINUTES_10 - 1,
    }),
    decision(
      'an agent that is not admitted',
      encodeHello({ ...helloOf('stranger'), agent_id: 'ghost' }),
      'NOT_ALLOWED',
      { remote: peerOf('stranger') },
    ),
    decision(
      'F-01 the name of another with the own key',
      encodeHello({ ...helloOf('stranger'), agent_id: 'pm' }),
      'IDENTITY_MISMATCH',
      { remote: peerOf('stranger') },
    ),
    decision('the key of another than the connection has', hello(), 'IDENTITY_MISMATCH', {
      remote: peerOf('stranger'),
    }),
    decision(
      'the name of the responder with another key',
      encodeHello({ ...helloOf('stranger'), agent_id: 'coder' }),
      'IDENTITY_MISMATCH',
      { remote: peerOf('stranger') },
    ),
    decision('the key of the responder itself', hello({}, 'coder'), 'DUPLICATE_AGENT', { remote: peerOf('coder') }),
    decision('a key of small order', rawHello({ key: url(neutral) }), 'HANDSHAKE_REFUSED'),
    decision('a field left out', rawHello({ nonce: undefined }), 'HANDSHAKE_REFUSED'),
    decision('not JSON', part(utf8('hello')), 'HANDSHAKE_REFUSED'),
    decision('more than 8 KiB', Uint8Array.of(0x81, 0x40), 'HANDSHAKE_REFUSED'),
  ]
}

const { hello, challenge, proof, welcome, context } = conversation()

/** What `coder` makes of message 3, after the hello and the challenge of the conversation. */
function proofs(): Vector[] {
  const signed = (changes: Partial<Proof> = {}, key: SigningKey = KEYS.pm) => {
    const body = encodeProof({ ...PROOF, ...changes })
    return concat([body, signTranscript('proof', { ...context, messages: [hello, challenge, body] }, key)])
  }
  const flipped = Uint8Array.from(proof, (byte, index) => (index === proof.length - 1 ? byte ^ 1 : byte))
  return [
    decision('a proof', proof),
    decision('of a later life', signed({ epoch: PROOF.epoch + 1 })),
    decision('of an earlier life than is known', signed({ epoch: PROOF.epoch - 1 }), 'DUPLICATE_AGENT'),
    decision('that knows a later life of the responder', signed({ seen_epoch: WELCOME.epoch + 1 }), 'DUPLICATE_AGENT'),
    decision('not signed', concat([proof.subarray(0, -64), new Uint8Array(64)]), 'HANDSHAKE_REFUSED'),
    decision('one bit changed', flipped, 'HANDSHAKE_REFUSED'),
    decision('by another key', signed({}, KEYS.stranger), 'HANDSHAKE_REFUSED'),
    decision(
      'a field left out',
      concat([part(utf8(JSON.stringify({ ...PROOF, epoch: undefined }))), new Uint8Array(64)]),
      'HANDSHAKE_REFUSED',
    ),
  ]
}

/** What `pm` makes of message 2, having dialled `coder`. */
function challenges(): Vector[] {
  const of = (changes: Parameters<typeof challengeOf>[1] = {}, name: Name = 'coder') =>
    encodeHello(challengeOf(name, changes))
  const chosen = challengeOf('coder').chosen
  return [
    decision('a challenge', challenge),
    decision('a version that was not offered', of({ chosen: { ...chosen, version: '1.1' } }), 'UNSUPPORTED_VERSION'),
    decision('a feature that was not offered', of({ chosen: { ...chosen, features: ['batch'] } }), 'HANDSHAKE_REFUSED'),
    decision('the own nonce sent back', of({ nonce: helloOf('pm').nonce }), 'HANDSHAKE_REFUSED'),
    decision('of another network', of({ network: 'other' }), 'HANDSHAKE_REFUSED'),
    decision('another agent than was dialled', of({}, 'reviewer'), 'IDENTITY_MISMATCH', { remote: peerOf('reviewer') }),
    decision('the key of another than the connection has', challenge, 'IDENTITY_MISMATCH', {
      remote: peerOf('stranger'),
    }),
    decision('a clock more than 10 minutes ahead', of({ time: NOW + MINUTES_10 + 1 }), 'CLOCK_SKEW', {
      offset_ms: MINUTES_10 + 1,
    }),
    decision('the hello sent back', hello, 'HANDSHAKE_REFUSED'),
  ]
}

/** What `pm` makes of message 4. */
function welcomes(): Vector[] {
  const signed = (changes: Partial<typeof WELCOME> = {}, what: 'welcome' | 'proof' = 'welcome') => {
    const body = encodeProof({ ...WELCOME, ...changes })
    return concat([body, signTranscript(what, { ...context, messages: [hello, challenge, proof, body] }, KEYS.coder)])
  }
  return [
    decision('a welcome', welcome),
    decision('of an earlier life than is known', signed({ epoch: WELCOME.epoch - 1 }), 'DUPLICATE_AGENT'),
    decision('that knows a later life of the initiator', signed({ seen_epoch: PROOF.epoch + 1 }), 'DUPLICATE_AGENT'),
    decision('signed as a proof', signed({}, 'proof'), 'HANDSHAKE_REFUSED'),
    decision('the proof sent back', proof, 'HANDSHAKE_REFUSED'),
  ]
}

/** Each message as the other side judges it: accepted, or refused with the code that the stranger is told. */
export function decisions(): Vector {
  return {
    responder: {
      agent_id: 'coder',
      now: NOW + 20,
      ...WELCOME,
      remote: context.initiator,
      hellos: hellos(),
      proofs: proofs(),
    },
    initiator: {
      agent_id: 'pm',
      now: NOW,
      ...PROOF,
      remote: context.responder,
      challenges: challenges(),
      welcomes: welcomes(),
    },
  }
}
