import { pointerTo, show } from '../payload/pointer.ts'

export interface LintWarning {
  /** JSON Pointer into the view. */
  readonly path: string
  readonly rule: 'nesting' | 'camel-case' | 'numeric-enum'
  readonly message: string
}

/** Levels of objects and lists inside the payload that read well. */
const MAX_LEVELS = 3
/** Warnings after which looking ends; and values looked at, so that a payload of 64 MiB does not hold us up. */
const MAX_WARNINGS = 50
const MAX_VALUES = 100_000

const CAMEL_CASE = /^(?=.*[a-z0-9][A-Z])[A-Za-z][A-Za-z0-9]*$/
/** Names whose values are one of a few by custom; a number there tells a reader nothing. */
const ENUM_NAME = /(^|_)(status|state|type|kind|mode|severity|category|action|reason|role|status_code|error_code)$/

/**
 * What in the JSON view of an envelope is allowed but hard to read for whoever gets it: payloads nested more than three
 * levels deep, names in camelCase, numbers where a word is expected. At most 50 warnings.
 */
export function lintEnvelopeView(view: unknown): LintWarning[] {
  const lint = new Lint()
  lint.visit(view, [], undefined)
  return lint.warnings
}

class Lint {
  readonly warnings: LintWarning[] = []
  #values = 0

  /** `level` counts the containers inside the payload; undefined outside of it. */
  visit(value: unknown, path: readonly (string | number)[], level: number | undefined): void {
    if (this.warnings.length >= MAX_WARNINGS || ++this.#values > MAX_VALUES) return
    if (typeof value !== 'object' || value === null) return
    if (level !== undefined && level > MAX_LEVELS) {
      // Once for each way down; what is below need not be looked at.
      this.#warn(path, 'nesting', `is nested more than ${MAX_LEVELS} levels deep in the payload; make it flatter`)
      return
    }
    const inside = level === undefined ? undefined : level + 1
    if (Array.isArray(value)) {
      for (const [index, item] of value.entries()) this.visit(item, [...path, index], inside)
      return
    }
    for (const [key, item] of Object.entries(value)) {
      const place = [...path, key]
      if (CAMEL_CASE.test(key)) this.#warn(place, 'camel-case', `write ${show(snakeCase(key))}: names are snake_case`)
      if (inside !== undefined && typeof item === 'number' && ENUM_NAME.test(snakeCase(key))) {
        this.#warn(place, 'numeric-enum', 'a number says little here; send the word it stands for')
      }
      this.visit(item, place, path.length === 0 && key === 'payload' ? 0 : inside)
    }
  }

  #warn(path: readonly (string | number)[], rule: LintWarning['rule'], message: string): void {
    if (this.warnings.length < MAX_WARNINGS) this.warnings.push({ path: pointerTo(path), rule, message })
  }
}

function snakeCase(key: string): string {
  return key.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase()
}
