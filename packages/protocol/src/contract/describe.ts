import type { CapabilityEntry } from '../documents/manifest.ts'
import type { Capability } from './types.ts'

/** The manifest's entry of a capability: plain JSON data. */
export function describeCapability(contract: Capability): CapabilityEntry {
  const { maxConcurrency, budgetMs, costLevel, p99Ms } = contract.constraints
  const { partial, yields, question, answer } = contract.jsonSchemas
  return {
    name: contract.name,
    description: contract.description,
    call_type: callTypeOf(contract),
    effects: contract.effects,
    input_schema: contract.jsonSchemas.input,
    output_schema: contract.jsonSchemas.output,
    ...(partial === undefined ? {} : { partial_schema: partial }),
    ...(yields === undefined ? {} : { yields_schema: yields }),
    ...(question === undefined ? {} : { question_schema: question }),
    ...(answer === undefined ? {} : { answer_schema: answer }),
    errors: contract.jsonSchemas.errors,
    labels: contract.labels,
    constraints: {
      ...(maxConcurrency === undefined ? {} : { max_concurrency: maxConcurrency }),
      ...(budgetMs === undefined ? {} : { budget_ms: budgetMs }),
      ...(costLevel === undefined ? {} : { cost_level: costLevel }),
      ...(p99Ms === undefined ? {} : { p99_ms: p99Ms }),
    },
    negative_capabilities: contract.negativeCapabilities,
  }
}

function callTypeOf({ schemas }: Capability): CapabilityEntry['call_type'] {
  if (schemas.yields !== undefined) return 'stream'
  return schemas.question === undefined ? 'request' : 'task'
}
