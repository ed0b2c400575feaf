export { capability, isCapability } from './capability.ts'
export { type CheckOptions, checkAgainst } from './check.ts'
export { isError } from './declared-error.ts'
export { describeCapability } from './describe.ts'
export { type CapabilityDraft, capabilityFrom } from './from-entry.ts'
export type { CapabilitySpec } from './spec.ts'
export type {
  AnswerOf,
  AnySchema,
  Capability,
  CapabilityConstraints,
  CapabilitySchemas,
  DeclaredErrorOf,
  ErrorDataOf,
  ErrorReturnOf,
  ErrorsOf,
  HandlerAnswerOf,
  HandlerInputOf,
  InputOf,
  JsonSchema,
  Labels,
  OutputOf,
  PartialOf,
  PartialReturnOf,
  PublishedSchemas,
  QuestionOf,
  QuestionReturnOf,
  ReturnOf,
  YieldOf,
  YieldReturnOf,
} from './types.ts'
