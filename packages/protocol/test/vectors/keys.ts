import { ed25519 } from '@noble/curves/ed25519.js'
import { fromHex, peerIdOf, toHex, utf8 } from '../../src/index.ts'
import { KEYS, type Name, type Vector } from './scene.ts'

const P = 2n ** 255n - 19n
const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n

/** 32 bytes, little-endian, of a y coordinate (which need not be reduced) and the sign of x. */
function encoding(y: bigint, sign: 0 | 1): string {
  const bytes = Buffer.from(y.toString(16).padStart(64, '0'), 'hex').reverse()
  bytes[31] = (bytes[31] as number) | (sign << 7)
  return toHex(bytes)
}

/** y of the points of order 8; the other two are their negatives. */
const ORDER_8 = BigInt('0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7')

/** The eight points of small order in their canonical encodings, then every other way to write them. */
function smallOrder(): Vector[] {
  const points: [string, bigint, 0 | 1][] = [
    ['the neutral point (order 1)', 1n, 0],
    ['order 2', P - 1n, 0],
    ['order 4', 0n, 0],
    ['order 4, negative', 0n, 1],
    ['order 8, first', ORDER_8, 0],
    ['order 8, first, negative', ORDER_8, 1],
    ['order 8, second', P - ORDER_8, 0],
    ['order 8, second, negative', P - ORDER_8, 1],
    ['the neutral point, with the sign of a zero x', 1n, 1],
    ['order 2, with the sign of a zero x', P - 1n, 1],
    ['the neutral point, y not reduced (p + 1)', P + 1n, 0],
    ['the neutral point, y not reduced, with the sign of a zero x', P + 1n, 1],
    ['order 4, y not reduced (p)', P, 0],
    ['order 4, negative, y not reduced (p)', P, 1],
  ]
  return points.map(([name, y, sign]) => ({
    name: `small order: ${name}`,
    public_key: encoding(y, sign),
    code: 'BAD_KEY',
  }))
}

function otherKeys(): Vector[] {
  const own = KEYS.pm.publicKey.raw
  const torsion = ed25519.Point.fromHex(encoding(ORDER_8, 0))
  const mixed = ed25519.Point.fromBytes(own).add(torsion).toHex()
  const refused = (name: string, public_key: string): Vector => ({ name, public_key, code: 'BAD_KEY' })
  return [
    refused('y not reduced, of large order (p + 3)', encoding(P + 3n, 0)),
    refused('a point of the curve outside the prime-order group', mixed),
    refused('not a point of the curve (y = 2)', encoding(2n, 0)),
    refused('31 bytes', toHex(own.subarray(0, 31))),
    refused('33 bytes', `${toHex(own)}00`),
    refused('no bytes', ''),
  ]
}

function signatures(): Vector[] {
  const message = utf8('签名 ✍️ of exactly these bytes')
  const key = KEYS.pm
  const good = key.sign(message)
  const scalar = BigInt(`0x${toHex(Uint8Array.from(good.subarray(32)).reverse())}`) + ORDER
  const raised = Buffer.from(scalar.toString(16).padStart(64, '0'), 'hex').reverse()
  const entry = (name: string, signature: Uint8Array, holds: boolean, text: Uint8Array = message): Vector => ({
    name,
    public_key: toHex(key.publicKey.raw),
    message: toHex(text),
    signature: toHex(signature),
    holds,
  })
  const flipped = Uint8Array.from(good)
  flipped[0] = (flipped[0] as number) ^ 1
  return [
    entry('a signature', good, true),
    entry('a signature of no bytes', key.sign(new Uint8Array(0)), true, new Uint8Array(0)),
    entry('one bit of it changed', flipped, false),
    entry('of another message', good, false, utf8('another message')),
    entry('by another key', KEYS.coder.sign(message), false),
    entry('the second half raised by the group order', Buffer.concat([good.subarray(0, 32), raised]), false),
    entry('63 bytes', good.subarray(0, 63), false),
    entry('65 bytes', Buffer.concat([good, fromHex('00')]), false),
    entry('all zeros', new Uint8Array(64), false),
  ]
}

export function keyVectors(): Vector {
  return {
    about:
      'Ed25519 keys: the seeds that all files sign with, fingerprint and peer id of each; keys to refuse; signatures.',
    keys: (Object.keys(KEYS) as Name[]).map((name) => {
      const { seed, publicKey } = KEYS[name]
      return {
        agent_id: name,
        seed: toHex(seed),
        public_key: toHex(publicKey.raw),
        fingerprint: publicKey.fingerprint,
        peer_id: peerIdOf(publicKey.raw),
      }
    }),
    refused: [...smallOrder(), ...otherKeys()],
    signatures: signatures(),
  }
}
