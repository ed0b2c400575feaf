import { checkName, decodePayload, HermesError, readRequestPayload } from '@hermes-peer/protocol'
import type { ForwardOptions, ForwardTarget } from '../api.ts'
import type { Incoming } from '../delivery/inbox.ts'
import type { CallGuard } from '../policy/guard.ts'
import type { Need, Ranking } from '../routing/router.ts'

export interface Choice {
  readonly incoming: Pick<Incoming, 'header' | 'frame' | 'via'>
  /** This agent. */
  readonly self: string
  readonly target: ForwardTarget
  readonly options: ForwardOptions
  rank(need: Need): Promise<Ranking>
  readonly policy: CallGuard
  /** An agent that is named gets it whenever it can be reached, as what is submitted to it does. */
  readonly patient?: boolean
}

/**
 * Agents that the work may be handed on to, best first. Rejects with `FORWARDING_UNSUPPORTED`, `TTL_EXPIRED`, `CALL_CYCLE` with the path, `NO_CANDIDATE`
 * with the reasons, or `INVALID_OPTION`.
 */
export async function chooseNext({
  incoming,
  self,
  target,
  options,
  rank,
  policy,
  patient = false,
}: Choice): Promise<readonly string[]> {
  const { header, frame, via } = incoming
  const capability = header.target_capability as string
  const agent = agentOf(target, capability)
  if (header.message_type !== 'submit' && (header.message_type !== 'request' || header.call_type !== 'request')) {
    throw new HermesError('FORWARDING_UNSUPPORTED', {
      message: `only a plain call or a task can be handed on, this is a ${header.call_type}`,
    })
  }
  const passed = [header.sender.agent_id, ...via, self]
  const way = agent === undefined ? passed : [...passed, agent]
  if (frame.hops.length >= header.max_hops) {
    throw new HermesError('TTL_EXPIRED', {
      message: `${header.max_hops} hops are allowed, and taken: ${passed.join(' → ')}`,
      details: { path: passed, max_hops: header.max_hops },
    })
  }
  if (agent !== undefined && passed.includes(agent)) throw cycle(way)
  if (agent !== undefined && header.path.includes(`${agent}#${capability}`)) {
    throw cycle([...header.path, `${agent}#${capability}`])
  }
  const handedOn = policy.looksAtInput ? { handedOn: inputOf(incoming) } : {}
  if (patient && agent !== undefined) {
    const denied = policy.denies(agent, capability, handedOn.handedOn)
    if (denied === undefined) return [agent]
    throw noCandidate(`${capability} to ${agent}`, [{ agent_id: agent, reason: denied }])
  }
  const { candidates } = await rank({
    capability,
    path: header.path,
    ...handedOn,
    ...(agent === undefined ? {} : { agent }),
    ...(options.where === undefined ? {} : { where: options.where }),
  })
  const open = candidates.filter(({ agentId, usable }) => usable && !passed.includes(agentId))
  if (open.length > 0) return open.map(({ agentId }) => agentId)
  const others = candidates.map(({ agentId, reasons, usable }) => ({
    agent_id: agentId,
    reason: usable ? 'it has had this message' : reasons.join('; '),
  }))
  const what = agent === undefined ? capability : `${capability} to ${agent}`
  throw noCandidate(what, others)
}

function noCandidate(what: string, others: readonly { agent_id: string; reason: string }[]): HermesError {
  return new HermesError('NO_CANDIDATE', {
    message: `nobody can be handed ${what}: ${others.map(({ agent_id, reason }) => `${agent_id}: ${reason}`).join('; ') || 'nobody is known that offers it'}`,
    details: { candidates: others },
  })
}

/** The input as its originator sent it. */
function inputOf({ header, frame }: Choice['incoming']): { readonly value: unknown } {
  const { input } = readRequestPayload(decodePayload(header.content_type, frame.payload))
  return { value: input }
}

/** The agent that is named, undefined when any that provides the capability will do. */
function agentOf(target: ForwardTarget, capability: string): string | undefined {
  if (typeof target === 'string') {
    checkName('agent_id', target, 'target')
    return target
  }
  const name = typeof target === 'object' && target !== null ? target.name : undefined
  if (name === capability) return undefined
  throw new HermesError('INVALID_OPTION', {
    message:
      typeof name === 'string'
        ? `target: the message asks for ${capability}, which cannot be changed to ${name}`
        : 'target must be an agent id, or the contract that is served',
    details: { field: 'target' },
  })
}

function cycle(path: readonly string[]): HermesError {
  return new HermesError('CALL_CYCLE', {
    message: `the message would come back to where it has been: ${path.join(' → ')}`,
    details: { path },
  })
}
