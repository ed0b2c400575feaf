import { cursor, domain, join, partOf } from './bytes.ts'
import type { VerifyingKey } from './ed25519.ts'
import { type Json, parseJson } from './json.ts'
import { Refused } from './refused.ts'

export const MAX_DOCUMENT = 16 * 1024

/** `part(JSON bytes as signed) ‖ signature(64)`, signed over domain ‖ 0x00 ‖ part. */
export function readDocument(bytes: Uint8Array, what: string, key: VerifyingKey): Json {
  const at = cursor(bytes, 'document')
  const json = at.part(MAX_DOCUMENT)
  const signature = at.take(64)
  at.end()
  if (!key.verifies(join(domain(what), partOf(json)), signature)) throw new Refused('signature', 'a forged document')
  return parseJson(json, 'document')
}
