import type { Effects } from '../documents/manifest.ts'
import { isErrorCode } from '../errors/codes.ts'
import { isWellFormed } from '../payload/inspect.ts'
import { show } from '../payload/pointer.ts'
import { invalidContract } from './refusal.ts'
import type { AnySchema, CapabilityConstraints, Labels } from './types.ts'

/** What `capability()` takes. */
export interface CapabilitySpec<
  I extends AnySchema = AnySchema,
  O extends AnySchema = AnySchema,
  P extends AnySchema | undefined = AnySchema | undefined,
  Y extends AnySchema | undefined = AnySchema | undefined,
  Q extends AnySchema | undefined = AnySchema | undefined,
  A extends AnySchema | undefined = AnySchema | undefined,
  E extends Readonly<Record<string, AnySchema>> = Readonly<Record<string, AnySchema>>,
> {
  /** For people and models: what it does, and what it does not; up to 2,048 characters. */
  readonly description: string
  readonly input: I
  readonly output: O
  /** Partial results, given while the work goes on or instead of it. */
  readonly partial?: P
  /** Pieces of a stream. */
  readonly yields?: Y
  /** A question that the handler may ask of its caller, and the answer to it. */
  readonly asks?: { readonly question: Q; readonly answer: A }
  /** Business errors by name (`TOO_LONG`), with the schema of their data; at most 64. */
  readonly errors?: E
  /** What a repeated run would do; default `once`: such work is never started twice. */
  readonly effects?: Effects
  /** What callers may select by; at most 64. */
  readonly labels?: Labels
  readonly constraints?: CapabilityConstraints
  /** What it does not do, so that it is not chosen for it; at most 64 texts. */
  readonly negativeCapabilities?: readonly string[]
}

const FIELDS: ReadonlySet<string> = new Set([
  'description',
  'input',
  'output',
  'partial',
  'yields',
  'asks',
  'errors',
  'effects',
  'labels',
  'constraints',
  'negativeCapabilities',
])

// Bounds that readers of manifests have too.
const MAX_DESCRIPTION = 2_048
const MAX_ENTRIES = 64
const MAX_TEXT = 256
const MAX_BUDGET_MS = 24 * 60 * 60 * 1000
const EFFECTS: ReadonlySet<unknown> = new Set(['none', 'idempotent', 'once'])
const ERROR_NAME = /^[A-Z][A-Z0-9_]{0,63}$/
const LABEL_NAME = /^[a-z0-9][a-z0-9._-]{0,63}$/

const BOUNDS: Readonly<Record<keyof CapabilityConstraints, number>> = {
  maxConcurrency: Number.MAX_SAFE_INTEGER,
  budgetMs: MAX_BUDGET_MS,
  costLevel: 5,
  p99Ms: MAX_BUDGET_MS,
}

/** Checks all but the schemas; throws `INVALID_CONTRACT` that names the field. */
export function checkSpec(name: string, spec: unknown): asserts spec is CapabilitySpec {
  const refuse: Refuse = (issue, ...path) => {
    throw invalidContract(name, path, issue)
  }
  if (!isRecord(spec)) refuse('is not an object with description, input and output')
  for (const field of Object.keys(spec)) {
    if (!FIELDS.has(field)) refuse(`is not a field of a contract; it has ${[...FIELDS].join(', ')}`, field)
  }
  const { description, effects, errors, labels, constraints, negativeCapabilities } = spec
  if (!isText(description, MAX_DESCRIPTION) || description === '') {
    refuse(`is not a text of 1 to ${MAX_DESCRIPTION} characters`, 'description')
  }
  if (spec.asks !== undefined && !isRecord(spec.asks)) refuse('is not {question, answer}', 'asks')
  if (effects !== undefined && !EFFECTS.has(effects)) refuse('is not none, idempotent or once', 'effects')
  if (errors !== undefined) checkErrors(errors, refuse)
  if (labels !== undefined) checkLabels(labels, refuse)
  if (constraints !== undefined) checkConstraints(constraints, refuse)
  if (negativeCapabilities !== undefined && !areTexts(negativeCapabilities)) {
    refuse(`is not a list of at most ${MAX_ENTRIES} texts of up to ${MAX_TEXT} characters`, 'negativeCapabilities')
  }
}

type Refuse = (issue: string, ...path: string[]) => never

function checkErrors(errors: unknown, refuse: Refuse): void {
  if (!isRecord(errors) || Object.keys(errors).length > MAX_ENTRIES) {
    refuse(`is not an object of at most ${MAX_ENTRIES} schemas by name`, 'errors')
  }
  for (const name of Object.keys(errors)) {
    if (!ERROR_NAME.test(name))
      refuse('is not a name like TOO_LONG: capitals, digits and _, at most 64', 'errors', name)
    if (isErrorCode(name)) refuse('is a code of the runtime; choose another name', 'errors', name)
  }
}

function checkLabels(labels: unknown, refuse: Refuse): void {
  if (!isRecord(labels) || Object.keys(labels).length > MAX_ENTRIES) {
    refuse(`is not an object of at most ${MAX_ENTRIES} labels`, 'labels')
  }
  for (const [name, value] of Object.entries(labels)) {
    if (!LABEL_NAME.test(name)) refuse('is not a name of lower-case letters, digits, dot, _ and -', 'labels', name)
    if (!isText(value, MAX_TEXT) && !areTexts(value)) {
      refuse(
        `is not a text of up to ${MAX_TEXT} characters, or a list of at most ${MAX_ENTRIES} of them`,
        'labels',
        name,
      )
    }
  }
}

function checkConstraints(constraints: unknown, refuse: Refuse): void {
  if (!isRecord(constraints)) refuse('is not an object', 'constraints')
  for (const [name, value] of Object.entries(constraints)) {
    const most = Object.hasOwn(BOUNDS, name) ? BOUNDS[name as keyof CapabilityConstraints] : undefined
    if (most === undefined) refuse(`is not one of ${Object.keys(BOUNDS).join(', ')}`, 'constraints', name)
    if (value === undefined) continue
    if (!Number.isSafeInteger(value) || (value as number) < 1 || (value as number) > most) {
      refuse(`${show(String(value))} is not an integer from 1 to ${most}`, 'constraints', name)
    }
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isText(value: unknown, longest: number): value is string {
  return typeof value === 'string' && value.length <= longest && isWellFormed(value)
}

function areTexts(value: unknown): boolean {
  return Array.isArray(value) && value.length <= MAX_ENTRIES && value.every((item) => isText(item, MAX_TEXT))
}
