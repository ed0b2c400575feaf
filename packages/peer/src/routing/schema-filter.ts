import { type CapabilityEntry, createSchemaGuard, type SchemaGuard } from '@hermes-peer/protocol'

/** An input as it is sent, and the JSON Schema of our own contract for it, if there is one. */
export interface GivenInput {
  readonly value: unknown
  readonly schema: unknown
}

/** Says why a provider's own schema does not accept an input, undefined when it does. */
export type SchemaFilter = (entry: CapabilityEntry, input: GivenInput) => string | undefined

export function createSchemaFilter(): SchemaFilter {
  /** Guards of schemas from other agents, by their manifest entry: made once, gone with the manifest. */
  const guards = new WeakMap<CapabilityEntry, SchemaGuard | { refused: string }>()
  /** Schemas of our own contracts found equal to an entry's: the contract has checked the input already. */
  const equal = new WeakMap<CapabilityEntry, unknown>()

  const guardOf = (entry: CapabilityEntry): SchemaGuard | { refused: string } => {
    let guard = guards.get(entry)
    if (!guard) {
      try {
        guard = createSchemaGuard(entry.input_schema)
      } catch (error) {
        guard = { refused: (error as Error).message }
      }
      guards.set(entry, guard)
    }
    return guard
  }

  return (entry, input) => {
    if (input.schema !== undefined) {
      if (equal.get(entry) === input.schema) return undefined
      if (JSON.stringify(entry.input_schema) === JSON.stringify(input.schema)) {
        equal.set(entry, input.schema)
        return undefined
      }
    }
    const guard = guardOf(entry)
    if ('refused' in guard) return `its input schema cannot be used: ${guard.refused}`
    const checked = guard.check(input.value)
    return checked.ok ? undefined : `its schema does not accept the input: ${checked.path || '/'} ${checked.message}`
  }
}
