import type { ContentType } from '../envelope/header-types.ts'
import { decodeJson, type EncodeOptions, encodeJson } from './json.ts'
import { decodeMsgpack, encodeMsgpack } from './msgpack.ts'
import { invalidPayload } from './refusal.ts'
import type { JsonValue } from './value.ts'

/** The bytes of plain data in the form that the recipient accepts. Throws as `encodeJson` does. */
export function encodePayload(contentType: ContentType, value: unknown, options?: EncodeOptions): Uint8Array {
  switch (contentType) {
    case 'application/json':
      return encodeJson(value, options)
    case 'application/msgpack':
      return encodeMsgpack(value, options)
    default:
      throw unknownType(contentType)
  }
}

/** Reads a payload strictly; both forms give the same data. Throws `INVALID_PAYLOAD` with the place. */
export function decodePayload(contentType: ContentType, bytes: Uint8Array): JsonValue {
  switch (contentType) {
    case 'application/json':
      return decodeJson(bytes)
    case 'application/msgpack':
      return decodeMsgpack(bytes)
    default:
      throw unknownType(contentType)
  }
}

function unknownType(contentType: never): Error {
  return invalidPayload(
    [],
    `content type ${String(contentType).slice(0, 64)} is not application/json or application/msgpack`,
  )
}
