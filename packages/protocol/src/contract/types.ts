import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { Effects } from '../documents/manifest.ts'
import type { HermesError } from '../errors/hermes-error.ts'

/** A schema that validates: zod, Valibot, ArkType and whatever else speaks Standard Schema. */
export type AnySchema = StandardSchemaV1

/** The schemas of one capability; what it does not have is undefined, or an empty object for errors. */
export interface CapabilitySchemas {
  readonly input: AnySchema
  readonly output: AnySchema
  readonly partial: AnySchema | undefined
  readonly yields: AnySchema | undefined
  readonly question: AnySchema | undefined
  readonly answer: AnySchema | undefined
  readonly errors: Readonly<Record<string, AnySchema>>
}

/** What a capability may cost and how much of it may run. */
export interface CapabilityConstraints {
  /** Handlers that run at the same time, 1 or more. */
  readonly maxConcurrency?: number
  /** Time that one piece of work may take, ms, up to one day. */
  readonly budgetMs?: number
  /** 1 is cheap, 5 is dear; breaks ties between candidates. */
  readonly costLevel?: number
  /** What it promises: 99 of 100 calls take no longer, ms, up to one day. */
  readonly p99Ms?: number
}

export type Labels = Readonly<Record<string, string | readonly string[]>>

/** A JSON Schema (draft 2020-12) as it is published. */
export type JsonSchema = Readonly<Record<string, unknown>>

/** The contract of a capability, as `capability()` makes it: immutable, and shared by provider and caller. */
export interface Capability<S extends CapabilitySchemas = CapabilitySchemas> {
  readonly name: string
  /** For people and models: what it does, and what it does not. */
  readonly description: string
  /** What a repeated run would do. */
  readonly effects: Effects
  readonly labels: Labels
  readonly constraints: CapabilityConstraints
  readonly negativeCapabilities: readonly string[]
  readonly schemas: S
  readonly jsonSchemas: PublishedSchemas
}

/** What travels, as JSON Schema: the input side of each schema, because the original value is sent. */
export interface PublishedSchemas {
  readonly input: JsonSchema
  readonly output: JsonSchema
  readonly partial: JsonSchema | undefined
  readonly yields: JsonSchema | undefined
  readonly question: JsonSchema | undefined
  readonly answer: JsonSchema | undefined
  readonly errors: Readonly<Record<string, JsonSchema>>
}

type In<T> = T extends AnySchema ? StandardSchemaV1.InferInput<T> : unknown
type Out<T> = T extends AnySchema ? StandardSchemaV1.InferOutput<T> : unknown

/** What a caller gives. */
export type InputOf<C extends Capability> = In<C['schemas']['input']>
/** What the handler gets. */
export type HandlerInputOf<C extends Capability> = Out<C['schemas']['input']>
/** What the handler returns. */
export type ReturnOf<C extends Capability> = In<C['schemas']['output']>
/** What the caller gets. */
export type OutputOf<C extends Capability> = Out<C['schemas']['output']>
/** A partial result as the caller gets it; unknown when the contract has none. */
export type PartialOf<C extends Capability> = Out<C['schemas']['partial']>
/** A partial result as the handler gives it. */
export type PartialReturnOf<C extends Capability> = In<C['schemas']['partial']>
/** One piece of a stream as the caller gets it. */
export type YieldOf<C extends Capability> = Out<C['schemas']['yields']>
/** One piece of a stream as the handler gives it. */
export type YieldReturnOf<C extends Capability> = In<C['schemas']['yields']>
/** A question as the handler asks it, and as the caller gets it. */
export type QuestionReturnOf<C extends Capability> = In<C['schemas']['question']>
export type QuestionOf<C extends Capability> = Out<C['schemas']['question']>
/** An answer as the caller gives it, and as the handler gets it. */
export type AnswerOf<C extends Capability> = In<C['schemas']['answer']>
export type HandlerAnswerOf<C extends Capability> = Out<C['schemas']['answer']>
/** Names of the declared errors. */
export type ErrorsOf<C extends Capability> = keyof C['schemas']['errors'] & string
/** Data of a declared error as the caller gets it. */
export type ErrorDataOf<C extends Capability, N extends ErrorsOf<C>> = Out<C['schemas']['errors'][N]>
/** Data of a declared error as the handler gives it. */
export type ErrorReturnOf<C extends Capability, N extends ErrorsOf<C>> = In<C['schemas']['errors'][N]>
/** A declared error, caught. */
export type DeclaredErrorOf<C extends Capability, N extends ErrorsOf<C>> = HermesError & {
  readonly data: ErrorDataOf<C, N>
}
