import { HermesError, isHermesError } from '@hermes-peer/protocol'
import type { Candidate } from './query.ts'

/**
 * A choice in words, one line for each agent: `✓` who can serve it, best first, and `✗` who is left out, with the reasons. Takes what
 * `find` gave, or the error of a call that found nobody. Throws `INVALID_OPTION` for anything else.
 */
export function explain(choice: readonly Candidate[] | HermesError): string {
  const lines = linesOf(choice)
  if (lines.length === 0) return 'nobody is known that could serve it'
  const several = new Set(lines.map(({ capability }) => capability)).size > 1
  const named = lines.map(({ agent, capability, ...rest }) => ({
    name: several && capability !== undefined ? `${agent}#${capability}` : agent,
    ...rest,
  }))
  const width = Math.max(...named.map(({ name }) => name.length))
  return named.map(({ name, usable, why }) => `${usable ? '✓' : '✗'} ${name.padEnd(width)}  ${why}`).join('\n')
}

interface Line {
  readonly agent: string
  readonly capability: string | undefined
  readonly usable: boolean
  readonly why: string
}

function linesOf(choice: readonly Candidate[] | HermesError): Line[] {
  if (isHermesError(choice)) {
    const { candidates } = choice.details
    if (Array.isArray(candidates)) {
      return candidates.map(
        ({ agent_id, capability, reason }: Record<'agent_id' | 'capability' | 'reason', string>) => ({
          agent: agent_id,
          capability,
          usable: false,
          why: reason,
        }),
      )
    }
  } else if (Array.isArray(choice)) {
    return (choice as readonly Candidate[]).map(({ agentId, capability, usable, reasons }) => ({
      agent: agentId,
      capability,
      usable,
      why: reasons.join(', '),
    }))
  }
  throw new HermesError('INVALID_OPTION', {
    message: 'choice must be what find() gave, or the error of a call that found nobody',
    details: { field: 'choice' },
  })
}
