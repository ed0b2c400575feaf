export { ENVELOPE_SCHEMA } from './envelope-schema.ts'
export { createSchemaGuard, type SchemaGuard, type SchemaGuardOptions, type SchemaVerdict } from './interpret.ts'
export { type LintWarning, lintEnvelopeView } from './lint.ts'
export { MANIFEST_SCHEMA } from './manifest-schema.ts'
export {
  ACK_SCHEMA,
  CANCEL_SCHEMA,
  END_SCHEMA,
  ERROR_SCHEMA,
  EVENT_SCHEMA,
  HEARTBEAT_SCHEMA,
  REQUEST_SCHEMA,
  RESPONSE_SCHEMA,
  TOOL_CALL_SCHEMA,
} from './payload-schemas.ts'
export { SCHEMA_LIMITS } from './prepare.ts'
export { TASK_CANCEL_SCHEMA, TASK_INPUT_SCHEMA, TASK_NEWS_SCHEMA, TASK_WATCH_SCHEMA } from './task-schemas.ts'
export { type EnvelopeView, toJsonView, type ViewExtra } from './view.ts'
