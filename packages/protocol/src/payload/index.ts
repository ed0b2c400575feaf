export type { ContentType } from '../envelope/header-types.ts'
export { decodePayload, encodePayload } from './codec.ts'
export {
  type CancelPayload,
  type EventPayload,
  type HeartbeatPayload,
  type RequestPayload,
  type ResponsePayload,
  type ResponseStatus,
  readCancelPayload,
  readEventPayload,
  readHeartbeatPayload,
  readRequestPayload,
  readResponsePayload,
} from './conventions.ts'
export { decodeJson, type EncodeOptions, encodeJson } from './json.ts'
export { isForbiddenKey, MAX_DEPTH, MAX_INTEGER, MAX_KEYS, MAX_PAYLOAD_BYTES } from './limits.ts'
export { decodeMsgpack, encodeMsgpack } from './msgpack.ts'
export { pointerTo } from './pointer.ts'
export { type RetryPolicy, readToolCall, type ToolCall } from './tool-call.ts'
export { deepFreeze, isJsonObject, type JsonObject, type JsonValue } from './value.ts'
