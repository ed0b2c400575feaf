import type { CapabilityEntry } from '../documents/manifest.ts'
import type { Capability } from './types.ts'

/** The manifest's entry of a capability: plain JSON data. */
export function describeCapability(contract: Capability): CapabilityEntry {
  const { maxConcurrency, budgetMs, costLevel } = contract.constraints
  return {
    name: contract.name,
    description: contract.description,
    call_type: callTypeOf(contract),
    effects: contract.effects,
    input_schema: contract.jsonSchemas.input,
    output_schema: contract.jsonSchemas.output,
    errors: contract.jsonSchemas.errors,
    labels: contract.labels,
    constraints: {
      ...(maxConcurrency === undefined ? {} : { max_concurrency: maxConcurrency }),
      ...(budgetMs === undefined ? {} : { budget_ms: budgetMs }),
      ...(costLevel === undefined ? {} : { cost_level: costLevel }),
    },
    negative_capabilities: contract.negativeCapabilities,
  }
}

function callTypeOf({ schemas }: Capability): CapabilityEntry['call_type'] {
  if (schemas.yields !== undefined) return 'stream'
  return schemas.question === undefined ? 'request' : 'task'
}
