import { randomInt } from 'node:crypto'

const ALPHABET = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'

/** A new correlation id. */
export function correlationId(): string {
  return `corr_${Array.from({ length: 16 }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')}`
}

export function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}

export function fromBase64(text: string): Buffer {
  return Buffer.from(text, 'base64')
}
