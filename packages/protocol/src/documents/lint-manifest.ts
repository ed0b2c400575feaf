import { pointerTo } from '../payload/pointer.ts'
import { isJsonObject } from '../payload/value.ts'
import type { CapabilityEntry } from './manifest.ts'

export interface ManifestWarning {
  /** JSON Pointer into the list of capabilities. */
  readonly path: string
  readonly rule: 'vague' | 'boasting' | 'look-alike' | 'open-schema' | 'no-bounds' | 'no-negatives'
  /** What is wrong, and what to write instead. */
  readonly message: string
}

/**
 * What a manifest may say but routing suffers from: descriptions that tell too little, or too much to be true, or the same twice;
 * schemas that accept anything; no bounds; nothing that it does not do. In the order of the capabilities; none for a sound one.
 */
export function lintManifest(capabilities: readonly CapabilityEntry[]): ManifestWarning[] {
  const words = capabilities.map(({ description }) => wordsOf(description))
  return capabilities.flatMap((entry, index) => {
    const warnings: ManifestWarning[] = []
    const warn = (field: string, rule: ManifestWarning['rule'], message: string) =>
      warnings.push({ path: pointerTo([index, field]), rule, message: `${entry.name}: ${message}` })
    const own = words[index] as ReadonlySet<string>
    const told = [...own].filter((word) => !wordsOf(entry.name.replaceAll(/[._@-]/g, ' ')).has(word))
    if (told.length < LEAST_WORDS) {
      warn(
        'description',
        'vague',
        'says hardly more than the name; say what goes in, what is done with it and what comes out',
      )
    }
    const boast = BOASTS.exec(entry.description)?.[0]
    if (boast !== undefined) {
      warn(
        'description',
        'boasting',
        `${JSON.stringify(boast)} fits every wish and so tells none apart; name what it is for`,
      )
    }
    const twin = words.findIndex((other, at) => at < index && alike(own, other))
    if (twin >= 0) {
      const { name } = capabilities[twin] as CapabilityEntry
      warn('description', 'look-alike', `reads like ${name}; say what sets the two apart`)
    }
    for (const field of ['input_schema', 'output_schema'] as const) {
      if (acceptsAnything(entry[field])) {
        warn(
          field,
          'open-schema',
          'accepts anything, so that nobody can tell whether an input fits; name the properties',
        )
      }
    }
    const { max_concurrency, budget_ms } = entry.constraints
    const missing = [max_concurrency ?? 'max_concurrency', budget_ms ?? 'budget_ms'].filter(
      (one) => typeof one === 'string',
    )
    if (missing.length > 0) {
      warn(
        'constraints',
        'no-bounds',
        `says no ${missing.join(' and no ')}; without it callers cannot tell how much it can take`,
      )
    }
    if (entry.negative_capabilities.length === 0) {
      warn(
        'negative_capabilities',
        'no-negatives',
        'says nothing that it does not do; name the nearest thing it is not for',
      )
    }
    return warnings
  })
}

/** Words beside those of the name under which a description cannot say what goes in and what comes out. */
const LEAST_WORDS = 4
/** Share of words in common from which on two descriptions read the same. */
const ALIKE = 0.8

/** Claims without an object, in the languages that agents here mostly describe themselves in. */
const BOASTS =
  /\b(anything|everything|whatever you (?:need|want)|all (?:kinds|sorts|types) of|any (?:task|kind|type|problem|question|request)s?|best|powerful|world[- ]class|state[- ]of[- ]the[- ]art|cutting[- ]edge|amazing|ultimate|universal|general[- ]purpose|all[- ]in[- ]one)\b|万能|无所不能|最好的|最强|最先进|世界一流|强大的?|任何(?:任务|问题|事情)|所有(?:任务|问题|事情)|一切|各种各样|通用/i

const segmenter = new Intl.Segmenter(undefined, { granularity: 'word' })

function wordsOf(text: string): ReadonlySet<string> {
  const words = new Set<string>()
  for (const { segment, isWordLike } of segmenter.segment(text.normalize('NFKC'))) {
    if (isWordLike) words.add(segment.toLowerCase())
  }
  return words
}

function alike(one: ReadonlySet<string>, other: ReadonlySet<string>): boolean {
  let common = 0
  for (const word of one) if (other.has(word)) common++
  const all = one.size + other.size - common
  return all > 0 && common / all >= ALIKE
}

/** Whether a schema leaves open what the value is made of. */
function acceptsAnything(schema: unknown): boolean {
  if (!isJsonObject(schema)) return schema !== false
  const { type, properties } = schema
  const says = Object.keys(schema).filter((keyword) => !DESCRIBING.has(keyword))
  if (says.length === 0) return true
  // An object of which nothing is said is as open as any value.
  return (
    type === 'object' && says.every((keyword) => keyword === 'type' || keyword === 'properties') && isEmpty(properties)
  )
}

const DESCRIBING: ReadonlySet<string> = new Set([
  '$schema',
  '$id',
  '$comment',
  'title',
  'description',
  'examples',
  'default',
])

const isEmpty = (properties: unknown): boolean => !isJsonObject(properties) || Object.keys(properties).length === 0
