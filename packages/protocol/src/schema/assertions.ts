import { show } from '../payload/pointer.ts'
import { canonicalText } from './equality.ts'
import { brief, isObject, keysIn, listOf, naturalOf, numberOf, textsOf } from './keyword-values.ts'
import { type Check, failure, type Keyword, type Run } from './node.ts'

const TYPES: ReadonlySet<string> = new Set(['null', 'boolean', 'number', 'integer', 'string', 'array', 'object'])

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

const type: Keyword = (place) => {
  const given = place.schema.type
  const names = typeof given === 'string' ? [given] : textsOf(place, 'type')
  for (const name of names) if (!TYPES.has(name)) place.refuse(`${brief(name)} is not a type`, 'type')
  const wanted = new Set(names)
  return (value) => {
    const found = typeOf(value)
    if (wanted.has(found) || (wanted.has('integer') && Number.isInteger(value))) return undefined
    return failure(`must be ${names.join(' or ')}, is ${found}`)
  }
}

/** Preparing is bounded by the size of the schema, not by steps. */
const UNBOUNDED: Run = { spend: () => {} }

const oneOfValues = (values: readonly unknown[], message: string): Check => {
  const texts = new Set(values.map((value) => canonicalText(value, UNBOUNDED)))
  const simple = values.every((value) => typeof value !== 'object' || value === null)
  return (value, run) => {
    const fits = !(simple && isComplex(value)) && texts.has(canonicalText(value, run))
    return fits ? undefined : failure(message)
  }
}

const isComplex = (value: unknown) => typeof value === 'object' && value !== null

const enumeration: Keyword = (place) => {
  const values = listOf(place, 'enum')
  return oneOfValues(
    values,
    `must be one of ${values.slice(0, 8).map(brief).join(', ')}${values.length > 8 ? ', …' : ''}`,
  )
}

const constant: Keyword = (place) => oneOfValues([place.schema.const], `must be ${brief(place.schema.const)}`)

const range =
  (keyword: string, fits: (value: number, bound: number) => boolean, words: string): Keyword =>
  (place) => {
    const bound = numberOf(place, keyword)
    return (value) =>
      typeof value !== 'number' || fits(value, bound) ? undefined : failure(`must be ${words} ${bound}`)
  }

const multipleOf: Keyword = (place) => {
  const divisor = numberOf(place, 'multipleOf')
  if (divisor <= 0) place.refuse('is not above 0', 'multipleOf')
  return (value) => {
    if (typeof value !== 'number') return undefined
    const quotient = value / divisor
    // 0.3 is a multiple of 0.1, whatever binary fractions say.
    const slack = Number.EPSILON * Math.max(1, Math.abs(quotient))
    return Math.abs(quotient - Math.round(quotient)) <= slack ? undefined : failure(`must be a multiple of ${divisor}`)
  }
}

/** Characters as people count code points. */
function lengthOf(text: string, run: Run): number {
  run.spend(text.length / 8)
  let length = text.length
  for (let i = 1; i < text.length; i++) {
    const low = text.charCodeAt(i)
    if (low >= 0xdc00 && low <= 0xdfff && (text.charCodeAt(i - 1) & 0xfc00) === 0xd800) length--
  }
  return length
}

const sized =
  (keyword: string, sizeOf: (value: unknown, run: Run) => number | undefined, unit: string): Keyword =>
  (place) => {
    const bound = naturalOf(place, keyword)
    const least = keyword.startsWith('min')
    return (value, run) => {
      const size = sizeOf(value, run)
      if (size === undefined || (least ? size >= bound : size <= bound)) return undefined
      return failure(`must have at ${least ? 'least' : 'most'} ${bound} ${unit}, has ${size}`)
    }
  }

const characters = (value: unknown, run: Run) => (typeof value === 'string' ? lengthOf(value, run) : undefined)
const items = (value: unknown) => (Array.isArray(value) ? value.length : undefined)
const properties = (value: unknown, run: Run) => (isObject(value) ? keysIn(value, run).length : undefined)

const pattern: Keyword = (place) => {
  const compiled = place.pattern(place.schema.pattern, 'pattern')
  return (value, run) => {
    if (typeof value !== 'string') return undefined
    run.spend(compiled.cost(value.length))
    return compiled.test(value) ? undefined : failure(`must match ${show(String(place.schema.pattern))}`)
  }
}

const uniqueItems: Keyword = (place) => {
  const { uniqueItems: wanted } = place.schema
  if (typeof wanted !== 'boolean') place.refuse('is not true or false', 'uniqueItems')
  return (value, run) => {
    if (!wanted || !Array.isArray(value)) return undefined
    const seen = new Set<string>()
    for (let i = 0; i < value.length; i++) {
      const text = canonicalText(value[i], run)
      if (seen.has(text)) return failure('stands twice in its list', i)
      seen.add(text)
    }
    return undefined
  }
}

const required: Keyword = (place) => {
  const names = textsOf(place, 'required')
  return (value, run) => {
    if (!isObject(value)) return undefined
    run.spend(names.length)
    const missing = names.find((name) => !Object.hasOwn(value, name))
    return missing === undefined ? undefined : failure('is missing', missing)
  }
}

const dependentRequired: Keyword = (place) => {
  const groups = Object.entries(isObject(place.schema.dependentRequired) ? place.schema.dependentRequired : {}).map(
    ([name]) => [name, textsOf(place, 'dependentRequired', name)] as const,
  )
  return (value, run) => {
    if (!isObject(value)) return undefined
    for (const [name, names] of groups) {
      if (!Object.hasOwn(value, name)) continue
      run.spend(names.length)
      const missing = names.find((other) => !Object.hasOwn(value, other))
      if (missing !== undefined) return failure(`is missing beside ${brief(name)}`, missing)
    }
    return undefined
  }
}

/** Keywords that judge a value by itself. */
export const ASSERTIONS: ReadonlyMap<string, Keyword> = new Map([
  ['type', type],
  ['enum', enumeration],
  ['const', constant],
  ['minimum', range('minimum', (value, bound) => value >= bound, 'at least')],
  ['maximum', range('maximum', (value, bound) => value <= bound, 'at most')],
  ['exclusiveMinimum', range('exclusiveMinimum', (value, bound) => value > bound, 'above')],
  ['exclusiveMaximum', range('exclusiveMaximum', (value, bound) => value < bound, 'below')],
  ['multipleOf', multipleOf],
  ['minLength', sized('minLength', characters, 'characters')],
  ['maxLength', sized('maxLength', characters, 'characters')],
  ['pattern', pattern],
  ['minItems', sized('minItems', items, 'items')],
  ['maxItems', sized('maxItems', items, 'items')],
  ['uniqueItems', uniqueItems],
  ['minProperties', sized('minProperties', properties, 'properties')],
  ['maxProperties', sized('maxProperties', properties, 'properties')],
  ['required', required],
  ['dependentRequired', dependentRequired],
])
