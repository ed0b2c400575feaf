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
export { type EndPayload, type EndStatus, readEndPayload } from './end.ts'
export { decodeJson, type EncodeOptions, encodeJson } from './json.ts'
export {
  type AckPayload,
  isTaskEnd,
  messageIdOf,
  readAckPayload,
  readTaskAnswerInput,
  readTaskCancelInput,
  readTaskCancelOutput,
  readTaskWatchInput,
  readTaskWatchOutput,
  type TaskAnswerInput,
  type TaskEvent,
  type TaskQuestion,
  type TaskState,
  type TaskWatchInput,
  type TaskWatchOutput,
  taskIdOf,
} from './tasks.ts'
export { type RetryPolicy, readToolCall, type ToolCall } from './tool-call.ts'
export { deepFreeze, isJsonObject, type JsonObject, type JsonValue } from './value.ts'
