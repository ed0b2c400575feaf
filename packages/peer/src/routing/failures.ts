import { HermesError } from '@hermes-peer/protocol'
import type { Breaker } from './breaker.ts'
import type { Candidate } from './query.ts'
import type { Need } from './router.ts'

/** Characters of a message that lists agents; the details have all of them. */
const MOST_MESSAGE = 4096

/** Somebody offers it, but fails: that is another answer than that nobody does. */
export function allFail(
  need: Need,
  candidates: readonly Candidate[],
  breaker: Pick<Breaker, 'read'>,
): HermesError | undefined {
  const failing = candidates.filter(({ reasons }) => reasons[0]?.startsWith('breaker '))
  if (failing.length === 0) return undefined
  const waits = failing.map(({ agentId, capability }) => {
    const state = breaker.read(agentId, capability ?? '')
    return state.state === 'open' ? state.probeInMs : 0
  })
  return breakerError(
    need.capability ?? (failing[0]?.capability as string),
    failing.map(({ agentId, reasons }) => `${agentId}: ${reasons[0]}`),
    Math.min(...waits),
    { candidates: listed(need, candidates) },
  )
}

/** That whoever offers a capability is not asked now. */
export function breakerError(
  capability: string,
  why: readonly string[],
  retryAfterMs: number,
  details: Record<string, unknown> = {},
): HermesError {
  return new HermesError('BREAKER_OPEN', {
    message: `${capability} fails wherever it is offered: ${why.join('; ')}`,
    retryAfterMs,
    details,
  })
}

export function nobody(need: Need, candidates: readonly Candidate[]): HermesError {
  const others = listed(need, candidates)
  const cycles = others.filter(({ reason }) => reason.startsWith('would wait for itself'))
  if (cycles.length > 0 && (need.agent !== undefined || cycles.length === others.length)) {
    const cycle = [...need.path, `${cycles[0]?.agent_id}#${need.capability}`]
    return new HermesError('CALL_CYCLE', {
      message: `the call would wait for itself: ${cycle.join(' → ')}`,
      details: { path: cycle },
    })
  }
  const what = wanted(need)
  return new HermesError('NO_CANDIDATE', {
    message:
      others.length === 0
        ? `nobody is known that offers ${what}`
        : `nobody can serve ${what}: ${others.map(({ agent_id, reason }) => `${agent_id}: ${reason}`).join('; ')}`.slice(
            0,
            MOST_MESSAGE,
          ),
    hint:
      others.length === 0
        ? 'Check that the other agent runs in the same network, that a bootstrap address leads to it, and that trust admits it.'
        : 'Each agent is listed with the reason why it was left out.',
    details: { candidates: others },
  })
}

/** Everyone who was considered, as plain data. */
function listed(need: Need, candidates: readonly Candidate[]) {
  return candidates.map(({ agentId, capability, reasons }) => ({
    agent_id: agentId,
    ...(need.capability === undefined && capability !== undefined ? { capability } : {}),
    reason: reasons.join('; '),
  }))
}

function wanted({ capability, agent, intent }: Need): string {
  const what = [capability && `capability ${capability}`, agent && `agent ${agent}`].filter(Boolean).join(' at ')
  if (intent === undefined) return what
  return `${what}${what === '' ? '' : ' for '}${JSON.stringify(intent.slice(0, 120))}`
}
