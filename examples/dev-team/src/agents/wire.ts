import { randomBytes } from 'node:crypto'
import { newCorrelationId } from '@hermes-peer/protocol'

/** A new correlation id. */
export function correlationId(): string {
  return newCorrelationId((length) => randomBytes(length))
}

export function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}

export function fromBase64(text: string): Buffer {
  return Buffer.from(text, 'base64')
}
