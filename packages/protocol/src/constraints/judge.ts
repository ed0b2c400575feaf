import { type Constraint, type Constraints, type Scalar, stepsOf } from './constraint.ts'

/**
 * Whether a constraint holds of an input: `unknown` where there is nothing to tell by, because the place is missing, is a list
 * without elements, has another type than the one that is constrained, or holds elements of which only some comply. What allows needs
 * `yes`, and what forbids is escaped by `no` alone.
 */
export type Finding = 'yes' | 'no' | 'unknown'

/** A constraint beside the steps that lead to its place. */
export interface PlacedConstraint {
  readonly pointer: string
  readonly steps: readonly string[]
  readonly constraint: Constraint
}

export function placed(constraints: Constraints): readonly PlacedConstraint[] {
  return Object.entries(constraints).map(([pointer, constraint]) => ({ pointer, steps: stepsOf(pointer), constraint }))
}

/** Levels of lists and objects that are gone into; a payload has fewer, what a schema makes of it may be anything. */
const DEEPEST = 64

/** Judges one constraint. Reads data alone: no getter runs, and what is inherited is not there. */
export function judgeConstraint({ steps, constraint }: PlacedConstraint, input: unknown): Finding {
  return walk(input, steps, constraint, 0, 0)
}

/** All of them together: `no` as soon as one does not hold, `yes` when each does. */
export function judgeConstraints(constraints: readonly PlacedConstraint[], input: unknown): Finding {
  let all: Finding = 'yes'
  for (const one of constraints) all = both(all, judgeConstraint(one, input))
  return all
}

function walk(value: unknown, steps: readonly string[], constraint: Constraint, at: number, depth: number): Finding {
  if (depth > DEEPEST) return 'unknown'
  if (Array.isArray(value)) return each(value, steps, constraint, at, depth)
  if (at === steps.length) return judgeScalar(constraint, value)
  if (typeof value !== 'object' || value === null) return 'unknown'
  const property = Object.getOwnPropertyDescriptor(value, steps[at] as string)
  if (!property || !('value' in property)) return 'unknown'
  return walk(property.value, steps, constraint, at + 1, depth + 1)
}

function each(list: readonly unknown[], steps: readonly string[], constraint: Constraint, at: number, depth: number) {
  let all: Finding | undefined
  for (let index = 0; index < list.length; index++) {
    const found = walk(list[index], steps, constraint, at, depth + 1)
    if (found === 'unknown' || (all !== undefined && found !== all)) return 'unknown'
    all = found
  }
  return all ?? 'unknown'
}

function judgeScalar(constraint: Constraint, value: unknown): Finding {
  const { equals, one_of, min, max, prefix } = constraint
  let all: Finding = 'yes'
  if (equals !== undefined) all = both(all, among([equals], value))
  if (one_of !== undefined) all = both(all, among(one_of, value))
  if (min !== undefined) all = both(all, isNumber(value) ? told(value >= min) : 'unknown')
  if (max !== undefined) all = both(all, isNumber(value) ? told(value <= max) : 'unknown')
  if (prefix !== undefined) all = both(all, typeof value === 'string' ? told(value.startsWith(prefix)) : 'unknown')
  return all
}

function among(values: readonly Scalar[], value: unknown): Finding {
  if (values.includes(value as Scalar)) return 'yes'
  return values.some((one) => kindOf(one) === kindOf(value)) ? 'no' : 'unknown'
}

const kindOf = (value: unknown): string => (value === null ? 'null' : typeof value)

const told = (holds: boolean): Finding => (holds ? 'yes' : 'no')

const isNumber = (value: unknown): value is number => typeof value === 'number' && !Number.isNaN(value)

function both(one: Finding, other: Finding): Finding {
  if (one === 'no' || other === 'no') return 'no'
  return one === 'unknown' || other === 'unknown' ? 'unknown' : 'yes'
}
