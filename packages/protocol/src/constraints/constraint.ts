/** A value that can be compared as a whole. */
export type Scalar = string | number | boolean | null

/** What stands at one place of an input; all that is given must hold of it. */
export interface Constraint {
  /** Exactly this, of the same type: `5` is not `"5"`. */
  readonly equals?: Scalar
  readonly one_of?: readonly Scalar[]
  /** A number of at least, and at most, so much. */
  readonly min?: number
  readonly max?: number
  /** A text that begins so, unit by unit. */
  readonly prefix?: string
}

/**
 * Constraints by JSON pointer (RFC 6901) into an input. A list that stands at a pointer, or anywhere on its way, stands for each of its
 * elements: positions in lists cannot be named, so that no element is passed over.
 */
export type Constraints = Readonly<Record<string, Constraint>>

/** Bounds of constraints, whoever wrote them. */
export const CONSTRAINT_LIMITS = {
  /** Pointers of one rule or delegation. */
  pointers: 16,
  /** UTF-16 units and steps of a pointer. */
  pointer: 256,
  steps: 16,
  /** Values of a `one_of`. */
  values: 256,
  /** UTF-16 units of a text. */
  text: 1024,
} as const

/** Called with the path below the value that is read, and why it is refused; throws. */
export type RefuseConstraint = (path: readonly (string | number)[], why: string) => never

/** Reads constraints of foreign make: every field is known, bounded, and says something that can hold. */
export function readConstraints(value: unknown, refuse: RefuseConstraint): Constraints {
  if (!isRecord(value)) refuse([], 'must be an object: constraints by JSON pointer')
  const entries = Object.entries(value as Record<string, unknown>)
  if (entries.length > CONSTRAINT_LIMITS.pointers) {
    refuse([], `has ${entries.length} pointers, the limit is ${CONSTRAINT_LIMITS.pointers}`)
  }
  const constraints: Record<string, Constraint> = {}
  for (const [pointer, constraint] of entries) {
    const why = pointerFault(pointer)
    if (why !== undefined) refuse([pointer], why)
    constraints[pointer] = readConstraint(constraint, (path, reason) => refuse([pointer, ...path], reason))
  }
  return Object.freeze(constraints)
}

/** The steps of a pointer. It must be one. */
export function stepsOf(pointer: string): readonly string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function pointerFault(pointer: string): string | undefined {
  if (pointer !== '' && !pointer.startsWith('/')) return 'is not a JSON pointer: it begins with "/"'
  if (/~(?![01])/.test(pointer)) return 'is not a JSON pointer: "~" is written ~0, and "/" within a name ~1'
  if (pointer.length > CONSTRAINT_LIMITS.pointer) return `is longer than ${CONSTRAINT_LIMITS.pointer} characters`
  const steps = stepsOf(pointer)
  if (steps.length > CONSTRAINT_LIMITS.steps) return `has more than ${CONSTRAINT_LIMITS.steps} steps`
  return steps.includes('__proto__') ? 'names __proto__, which no input has' : undefined
}

const KNOWN = ['equals', 'one_of', 'min', 'max', 'prefix']

function readConstraint(value: unknown, refuse: RefuseConstraint): Constraint {
  if (!isRecord(value)) refuse([], `must be an object with ${KNOWN.join(', ')}`)
  const raw = value as Record<string, unknown>
  const fields = Object.keys(raw)
  if (fields.length === 0) refuse([], `says nothing; it has ${KNOWN.join(', ')}`)
  const unknown = fields.find((field) => !KNOWN.includes(field))
  if (unknown !== undefined) refuse([unknown], `is not known here; a constraint has ${KNOWN.join(', ')}`)
  const { equals, one_of, min, max, prefix } = raw
  if ('equals' in raw) checkScalar(equals, ['equals'], refuse)
  if ('one_of' in raw) {
    if (!Array.isArray(one_of) || one_of.length === 0 || one_of.length > CONSTRAINT_LIMITS.values) {
      refuse(['one_of'], `must be a list of 1 to ${CONSTRAINT_LIMITS.values} values`)
    }
    for (const [index, one] of (one_of as unknown[]).entries()) checkScalar(one, ['one_of', index], refuse)
  }
  for (const [field, number] of [
    ['min', min],
    ['max', max],
  ] as const) {
    if (field in raw && (typeof number !== 'number' || !Number.isFinite(number))) refuse([field], 'must be a number')
  }
  if (typeof min === 'number' && typeof max === 'number' && min > max) {
    refuse(['min'], `is ${min}, above max, ${max}: nothing could hold`)
  }
  if ('prefix' in raw) {
    checkScalar(prefix, ['prefix'], refuse)
    if (typeof prefix !== 'string' || prefix === '') refuse(['prefix'], 'must be a text that is not empty')
  }
  return Object.freeze({ ...raw, ...(one_of === undefined ? {} : { one_of: [...(one_of as Scalar[])] }) }) as Constraint
}

function checkScalar(value: unknown, path: readonly (string | number)[], refuse: RefuseConstraint): void {
  const type = typeof value
  if (value === null || type === 'boolean') return
  if (type === 'number') {
    if (!Number.isFinite(value)) refuse(path, 'must be a finite number')
    return
  }
  if (type !== 'string') refuse(path, 'must be a text, a number, true, false or null')
  const text = value as string
  if (text.length > CONSTRAINT_LIMITS.text) refuse(path, `is longer than ${CONSTRAINT_LIMITS.text} characters`)
  if (/\p{Surrogate}/u.test(text)) refuse(path, 'has half of a character in it')
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
