import { uvarintLength, writeUvarint } from './varint.ts'

const encoder = new TextEncoder()

export const utf8 = (text: string): Uint8Array => encoder.encode(text)

export function concat(pieces: readonly Uint8Array[]): Uint8Array {
  let size = 0
  for (const piece of pieces) size += piece.length
  const out = new Uint8Array(size)
  let at = 0
  for (const piece of pieces) {
    out.set(piece, at)
    at += piece.length
  }
  return out
}

/** `part(x) = uvarint(len) x` */
export function part(bytes: Uint8Array): Uint8Array {
  const head = uvarintLength(bytes.length)
  const out = new Uint8Array(head + bytes.length)
  out.set(bytes, writeUvarint(out, 0, bytes.length))
  return out
}

export function uvarint(value: number): Uint8Array {
  const out = new Uint8Array(uvarintLength(value))
  writeUvarint(out, 0, value)
  return out
}

export function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')
}

export function fromHex(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, 'hex'))
}

export function toBase64url(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64url')
}

const BASE64URL = /^[A-Za-z0-9_-]*$/

/** The bytes of canonical, unpadded base64url; undefined for any other spelling. */
export function fromBase64url(text: string): Uint8Array | undefined {
  if (!BASE64URL.test(text)) return undefined
  const bytes = new Uint8Array(Buffer.from(text, 'base64url'))
  return toBase64url(bytes) === text ? bytes : undefined
}

export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false
  return true
}
