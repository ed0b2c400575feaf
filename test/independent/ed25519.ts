import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto'
import { hex } from './bytes.ts'
import { Refused } from './refused.ts'

// RFC 8032, 5.1: the field, the curve constant and a square root of -1.
const P = 2n ** 255n - 19n
const D = mod(-121665n * inverse(121666n))
/** Order of the group that the base point makes. */
const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n
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

/** A raw key that may be used: the one encoding of a point of the prime-order group. Else throws `Refused('key')`. */
export function verifyingKey(raw: Uint8Array): VerifyingKey {
  if (raw.length !== 32) throw new Refused('key', `${raw.length} bytes are no Ed25519 key`)
  checkPoint(raw)
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

/** Extended coordinates (X : Y : Z : X·Y/Z), RFC 8032, 5.1.4. */
type Point = readonly [bigint, bigint, bigint, bigint]

const NEUTRAL: Point = [0n, 1n, 1n, 0n]
const isNeutral = ([x, y, z]: Point): boolean => x === 0n && y === z

function checkPoint(raw: Uint8Array): void {
  const bytes = Uint8Array.from(raw)
  const sign = (bytes[31] ?? 0) >> 7
  bytes[31] = (bytes[31] ?? 0) & 0x7f
  const written = BigInt(`0x${hex(bytes.reverse())}`)
  const y = written % P
  const x = abscissa(y, sign)
  if (x === undefined) throw new Refused('key', 'not a point of the curve')
  const point: Point = [x, y, 1n, mod(x * y)]
  // What the cofactor turns neutral had an order of 1, 2, 4 or 8.
  if (isNeutral(multiply(point, 8n))) throw new Refused('key', 'a point of small order')
  if (!isNeutral(multiply(point, ORDER))) throw new Refused('key', 'not of the prime-order group')
  if (written >= P) throw new Refused('key', 'a coordinate that is not reduced')
}

function multiply(point: Point, times: bigint): Point {
  let sum = NEUTRAL
  let double = point
  for (let rest = times; rest > 0n; rest >>= 1n) {
    if (rest & 1n) sum = add(sum, double)
    double = add(double, double)
  }
  return sum
}

function abscissa(y: bigint, sign: number): bigint | undefined {
  const square = mod((y * y - 1n) * inverse(D * y * y + 1n))
  let x = power(square, (P + 3n) / 8n)
  if (mod(x * x - square) !== 0n) x = mod(x * ROOT_OF_MINUS_ONE)
  if (mod(x * x - square) !== 0n) return undefined
  return Number(x & 1n) === sign ? x : mod(-x)
}

function add([x1, y1, z1, t1]: Point, [x2, y2, z2, t2]: Point): Point {
  const a = mod((y1 - x1) * (y2 - x2))
  const b = mod((y1 + x1) * (y2 + x2))
  const c = mod(2n * D * mod(t1 * t2))
  const d = mod(2n * z1 * z2)
  const [e, f, g, h] = [b - a, d - c, d + c, b + a]
  return [mod(e * f), mod(g * h), mod(f * g), mod(e * h)]
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
