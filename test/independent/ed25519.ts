import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto'
import { hex } from './bytes.ts'
import { Refused } from './refused.ts'

// RFC 8032, 5.1: the field, the curve constant and a square root of -1.
const P = 2n ** 255n - 19n
const D = (P - 121665n) * inverse(121666n)
const ROOT_OF_MINUS_ONE = power(2n, (P - 1n) / 4n)

export function sha256(...pieces: Uint8Array[]): Uint8Array {
  const hash = createHash('sha256')
  for (const piece of pieces) hash.update(piece)
  return hash.digest()
}

export interface VerifyingKey {
  readonly raw: Uint8Array
  readonly fingerprint: string
  verifies(message: Uint8Array, signature: Uint8Array): boolean
}

/** A raw key that may be used. Throws `Refused('key')` for another length, a point off the curve or of small order. */
export function verifyingKey(raw: Uint8Array): VerifyingKey {
  if (raw.length !== 32) throw new Refused('key', `${raw.length} bytes are no Ed25519 key`)
  checkOrder(raw)
  const key = keyObject(raw)
  return {
    raw,
    fingerprint: `sha256:${hex(sha256(raw))}`,
    verifies: (message, signature) => signature.length === 64 && verify(null, message, key, signature),
  }
}

function keyObject(raw: Uint8Array): KeyObject {
  const x = Buffer.from(raw).toString('base64url')
  return createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x } })
}

/** Multiplies the point by the cofactor; what becomes neutral had an order of 1, 2, 4 or 8. */
function checkOrder(raw: Uint8Array): void {
  const bytes = Uint8Array.from(raw)
  const sign = (bytes[31] ?? 0) >> 7
  bytes[31] = (bytes[31] ?? 0) & 0x7f
  const written = BigInt(`0x${hex(bytes.reverse())}`)
  const y = written % P
  const x = abscissa(y, sign)
  if (x === undefined) throw new Refused('key', 'not a point of the curve')
  let point: readonly [bigint, bigint] = [x, y]
  for (let doubling = 0; doubling < 3; doubling += 1) point = add(point, point)
  if (point[0] === 0n && point[1] === 1n) throw new Refused('key', 'a point of small order')
  if (written >= P) throw new Refused('key', 'a coordinate that is not reduced')
}

function abscissa(y: bigint, sign: number): bigint | undefined {
  const square = mod((y * y - 1n) * inverse(D * y * y + 1n))
  let x = power(square, (P + 3n) / 8n)
  if (mod(x * x - square) !== 0n) x = mod(x * ROOT_OF_MINUS_ONE)
  if (mod(x * x - square) !== 0n) return undefined
  return Number(x & 1n) === sign ? x : mod(-x)
}

function add([x1, y1]: readonly [bigint, bigint], [x2, y2]: readonly [bigint, bigint]): readonly [bigint, bigint] {
  const product = mod(D * mod(x1 * x2) * mod(y1 * y2))
  return [
    mod((x1 * y2 + x2 * y1) * inverse(mod(1n + product))),
    mod((y1 * y2 + x1 * x2) * inverse(mod(1n - product))),
  ]
}

function mod(value: bigint): bigint {
  const rest = value % P
  return rest < 0n ? rest + P : rest
}

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n
  let square = mod(base)
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = mod(result * square)
    square = mod(square * square)
  }
  return result
}

function inverse(value: bigint): bigint {
  return power(value, P - 2n)
}
