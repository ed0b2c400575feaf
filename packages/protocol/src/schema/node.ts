import type { JsonObject } from '../payload/value.ts'
import type { Pattern } from './pattern.ts'

/** Why a value does not fit; the path grows from the value outwards, so it is the wrong way round. */
export interface Failure {
  readonly path: (string | number)[]
  readonly message: string
}

/** One check of one value with its budget. */
export interface Run {
  /** Ends the run when more steps are spent than it may take. */
  spend(steps: number): void
}

export type Check = (value: unknown, run: Run) => Failure | undefined

/** A prepared subschema: data and functions of ours, nothing generated from text. */
export interface SchemaNode {
  readonly checks: Check[]
  /** Subschemas that are applied from here, for the search for cycles. */
  readonly next: SchemaNode[]
}

/** Where a keyword is being prepared. `steps` lead from its schema to a part of it. */
export interface Place {
  readonly schema: JsonObject
  child(...steps: string[]): SchemaNode
  /** The subschema that a `$ref` leads to; known when the whole document has been prepared. */
  reference(target: string): () => SchemaNode
  pattern(source: unknown, ...steps: string[]): Pattern
  /** Throws `INVALID_CONTRACT` that names the part. */
  refuse(why: string, ...steps: string[]): never
}

/** Makes the check of a keyword that stands in the schema; undefined when it only holds subschemas for others. */
export type Keyword = (place: Place) => Check | undefined

export const failure = (message: string, ...path: (string | number)[]): Failure => ({ path, message })

/** Steps for looking at one value by one subschema, on top of what its checks spend. */
const STEPS_OF_A_NODE = 4

export function evaluate(node: SchemaNode, value: unknown, run: Run): Failure | undefined {
  run.spend(STEPS_OF_A_NODE)
  for (const check of node.checks) {
    const found = check(value, run)
    if (found) return found
  }
  return undefined
}

/** The same for a part of the value, whose place is told. */
export function evaluateAt(step: string | number, node: SchemaNode, value: unknown, run: Run): Failure | undefined {
  const found = evaluate(node, value, run)
  found?.path.push(step)
  return found
}
