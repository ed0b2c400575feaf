import type { Constraint, Constraints, Scalar } from './constraint.ts'

/**
 * Whether whatever `child` lets through `parent` lets through too, told by their forms alone: undefined, or the pointer and field of the
 * parent that the child does not keep.
 */
export function widening(child: Constraints, parent: Constraints): { pointer: string; field: string } | undefined {
  for (const [pointer, wanted] of Object.entries(parent)) {
    const own = Object.hasOwn(child, pointer) ? child[pointer] : undefined
    for (const field of Object.keys(wanted) as (keyof Constraint)[]) {
      if (!own || !implies(own, wanted, field)) return { pointer, field }
    }
  }
  return undefined
}

function implies(own: Constraint, wanted: Constraint, field: keyof Constraint): boolean {
  const values = valuesOf(own)
  const every = (holds: (value: Scalar) => boolean): boolean => values?.every(holds) === true
  switch (field) {
    case 'equals':
      return every((value) => value === wanted.equals)
    case 'one_of':
      return every((value) => wanted.one_of?.includes(value) === true)
    case 'min': {
      const least = wanted.min as number
      return (
        (own.min !== undefined && own.min >= least) || every((value) => typeof value === 'number' && value >= least)
      )
    }
    case 'max': {
      const most = wanted.max as number
      return (own.max !== undefined && own.max <= most) || every((value) => typeof value === 'number' && value <= most)
    }
    case 'prefix': {
      const start = wanted.prefix as string
      return (
        own.prefix?.startsWith(start) === true || every((value) => typeof value === 'string' && value.startsWith(start))
      )
    }
  }
}

/** The values that a constraint leaves to choose from, where it names them. */
function valuesOf({ equals, one_of }: Constraint): readonly Scalar[] | undefined {
  if (equals === undefined) return one_of
  return one_of === undefined || one_of.includes(equals) ? [equals] : []
}

/** Constraints that let through what both let through; the pointer at which nothing is left, where that shows. */
export function intersection(one: Constraints, other: Constraints): Constraints | { readonly nothingAt: string } {
  const result: Record<string, Constraint> = { ...one }
  for (const [pointer, constraint] of Object.entries(other)) {
    const known = Object.hasOwn(result, pointer) ? result[pointer] : undefined
    const both = known ? meet(known, constraint) : constraint
    if (!both) return { nothingAt: pointer }
    result[pointer] = both
  }
  return result
}

function meet(one: Constraint, other: Constraint): Constraint | undefined {
  const min = greatest(one.min, other.min)
  const max = greatest(negated(one.max), negated(other.max))
  const prefix = longer(one.prefix, other.prefix)
  if (prefix === null) return undefined
  const bounds = {
    ...(min === undefined ? {} : { min }),
    ...(max === undefined ? {} : { max: -max }),
    ...(prefix === undefined ? {} : { prefix }),
  }
  if (min !== undefined && max !== undefined && min > -max) return undefined
  const [mine, theirs] = [valuesOf(one), valuesOf(other)]
  const values = mine && theirs ? mine.filter((value) => theirs.includes(value)) : (mine ?? theirs)
  if (values === undefined) return bounds
  const left = values.filter((value) => fits(value, bounds))
  if (left.length === 0) return undefined
  return left.length === 1 ? { equals: left[0] as Scalar } : { one_of: left }
}

function fits(value: Scalar, { min, max, prefix }: Constraint): boolean {
  if (min !== undefined && !(typeof value === 'number' && value >= min)) return false
  if (max !== undefined && !(typeof value === 'number' && value <= max)) return false
  return prefix === undefined || (typeof value === 'string' && value.startsWith(prefix))
}

const negated = (value: number | undefined): number | undefined => (value === undefined ? undefined : -value)

function greatest(one: number | undefined, other: number | undefined): number | undefined {
  if (one === undefined) return other
  return other === undefined ? one : Math.max(one, other)
}

/** Null: no text begins with both. */
function longer(one: string | undefined, other: string | undefined): string | undefined | null {
  if (one === undefined) return other
  if (other === undefined || one.startsWith(other)) return one
  return other.startsWith(one) ? other : null
}
