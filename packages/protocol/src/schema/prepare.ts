import { HermesError, isHermesError } from '../errors/hermes-error.ts'
import { inspect } from '../payload/inspect.ts'
import { pointerTo, show } from '../payload/pointer.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../payload/value.ts'
import { APPLICATORS } from './applicators.ts'
import { ASSERTIONS } from './assertions.ts'
import { failure, type Place, type SchemaNode } from './node.ts'
import { compilePattern, type Pattern } from './pattern.ts'

/** Bounds of a schema that somebody else wrote (wire contract, "Schemas from others"). */
export const SCHEMA_LIMITS = {
  /** Bytes of its JSON text. */
  bytes: 16 * 1024,
  /** Subschemas inside one another. */
  depth: 16,
  /** Subschemas in all. */
  nodes: 500,
  /** UTF-16 units of one pattern, and of all different ones together: bounds what compiling them costs. */
  pattern: 1_024,
  patterns: 4_096,
} as const

const DIALECT = 'https://json-schema.org/draft/2020-12/schema'

/** Keywords that would change the verdict if they were passed over; all other unknown ones only describe. */
const REFUSED: ReadonlySet<string> = new Set([
  '$dynamicRef',
  '$recursiveRef',
  'unevaluatedProperties',
  'unevaluatedItems',
  'dependencies',
  'additionalItems',
])

const KEYWORDS = [...ASSERTIONS, ...APPLICATORS]

/** The root of the tree of nodes. Throws `INVALID_CONTRACT` that names `what` and the place in the schema. */
export function prepareSchema(schema: unknown, what: string): SchemaNode {
  return new Preparation(what).run(schema)
}

class Preparation {
  readonly #what: string
  /** By place, at most 500. */
  readonly #nodes = new Map<string, SchemaNode>()
  readonly #references: { from: SchemaNode; target: string; path: readonly string[] }[] = []
  /** By source, so that a pattern used often is compiled once; bounded by their length together. */
  readonly #patterns = new Map<string, Pattern>()
  #patternLength = 0

  constructor(what: string) {
    this.#what = what
  }

  run(schema: unknown): SchemaNode {
    this.#checkData(schema)
    if (isJsonObject(schema) && schema.$schema !== undefined && schema.$schema !== DIALECT) {
      this.#refuse(['$schema'], `only ${DIALECT} is understood`)
    }
    const root = this.#subschema(schema as JsonValue, [], 1)
    for (const { from, target, path } of this.#references) {
      const node = this.#nodes.get(target)
      if (!node) this.#refuse(path, `leads to no subschema of this document`)
      from.next.push(node)
      if (leadsTo(node, from)) this.#refuse(path, 'leads back to itself; a schema that contains itself cannot be used')
    }
    return root
  }

  #checkData(schema: unknown): void {
    if (schema === undefined) this.#refuse([], 'is missing')
    try {
      inspect(schema, { limit: SCHEMA_LIMITS.bytes, checkStrings: true })
    } catch (error) {
      if (!isHermesError(error)) throw error
      if (error.code === 'PAYLOAD_TOO_LARGE') this.#refuse([], `is larger than ${SCHEMA_LIMITS.bytes} bytes`)
      throw this.#error(String(error.details.path), String(error.details.issue))
    }
    const size = new TextEncoder().encode(JSON.stringify(schema)).length
    if (size > SCHEMA_LIMITS.bytes) this.#refuse([], `has ${size} bytes, the limit is ${SCHEMA_LIMITS.bytes}`)
  }

  #subschema(schema: JsonValue, path: readonly string[], depth: number): SchemaNode {
    const key = keyOf(path)
    const known = this.#nodes.get(key)
    if (known) return known
    const node: SchemaNode = { checks: [], next: [] }
    this.#nodes.set(key, node)
    if (this.#nodes.size > SCHEMA_LIMITS.nodes) this.#refuse(path, `has more than ${SCHEMA_LIMITS.nodes} subschemas`)
    if (depth > SCHEMA_LIMITS.depth) this.#refuse(path, `is nested more than ${SCHEMA_LIMITS.depth} deep`)
    if (typeof schema === 'boolean') {
      if (!schema) node.checks.push(() => failure('is not allowed'))
      return node
    }
    if (!isJsonObject(schema)) this.#refuse(path, 'is not a schema: an object, true or false')
    for (const keyword of Object.keys(schema)) {
      if (REFUSED.has(keyword)) this.#refuse([...path, keyword], 'this keyword is not supported')
    }
    if (schema.$id !== undefined && depth > 1) this.#refuse([...path, '$id'], 'only the root may have an $id')
    const place = this.#place(schema, node, path, depth)
    for (const [keyword, prepare] of KEYWORDS) {
      const check = Object.hasOwn(schema, keyword) ? prepare(place) : undefined
      if (check) node.checks.push(check)
    }
    return node
  }

  #place(schema: JsonObject, node: SchemaNode, path: readonly string[], depth: number): Place {
    return {
      schema,
      child: (...steps) => {
        let value: unknown = schema
        for (const step of steps) value = (value as Record<string, unknown>)[step]
        const child = this.#subschema(value as JsonValue, [...path, ...steps], depth + 1)
        node.next.push(child)
        return child
      },
      reference: (target) => {
        const key = keyOf(stepsOf(target) ?? this.#refuse([...path, '$ref'], 'is not a JSON Pointer'))
        this.#references.push({ from: node, target: key, path: [...path, '$ref'] })
        return () => this.#nodes.get(key) as SchemaNode
      },
      pattern: (source, ...steps) => this.#pattern(source, [...path, ...steps]),
      refuse: (why, ...steps) => this.#refuse([...path, ...steps], why),
    }
  }

  #pattern(source: unknown, path: readonly string[]): Pattern {
    if (typeof source !== 'string') this.#refuse(path, 'is not a text')
    const known = this.#patterns.get(source)
    if (known) return known
    this.#patternLength += source.length
    if (source.length > SCHEMA_LIMITS.pattern || this.#patternLength > SCHEMA_LIMITS.patterns) {
      this.#refuse(
        path,
        `patterns may have ${SCHEMA_LIMITS.pattern} characters, all together ${SCHEMA_LIMITS.patterns}`,
      )
    }
    try {
      const pattern = compilePattern(source)
      this.#patterns.set(source, pattern)
      return pattern
    } catch (cause) {
      return this.#refuse(path, `is no pattern that RE2 can run: ${show((cause as Error).message)}`)
    }
  }

  #refuse(path: readonly string[], why: string): never {
    throw this.#error(pointerTo(path), why)
  }

  #error(pointer: string, issue: string): HermesError {
    return new HermesError('INVALID_CONTRACT', {
      message: `${this.#what}${pointer}: ${issue}`,
      details: { path: pointer, issue },
    })
  }
}

/** Depth first, each node once. */
function leadsTo(from: SchemaNode, goal: SchemaNode): boolean {
  const seen = new Set<SchemaNode>([from])
  for (const node of seen) {
    if (node === goal) return true
    for (const next of node.next) seen.add(next)
  }
  return false
}

/** One text a place: the steps as JSON, so that no step can look like two. */
function keyOf(path: readonly string[]): string {
  return JSON.stringify(path)
}

/** The steps of `#/…`, undefined when it is no JSON Pointer. */
function stepsOf(reference: string): string[] | undefined {
  try {
    const steps = decodeURIComponent(reference.slice(2)).split('/')
    if (steps.some((step) => /~(?![01])/.test(step))) return undefined
    return steps.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
  } catch {
    return undefined
  }
}
