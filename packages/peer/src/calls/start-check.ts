import { type Header, HermesError } from '@hermes-peer/protocol'
import type { Tunables } from '../defaults.ts'
import type { Provided } from './job.ts'

export interface StartFacts {
  readonly agentId: string
  readonly name: string
  readonly header: Header
  readonly from: string
  readonly provided: Provided | undefined
  /** It has come over a stream of its own, which takes what is yielded. */
  readonly streams: boolean
  readonly draining: boolean
  /** Work of that caller, and of all, that is in flight here. */
  readonly own: number
  readonly all: number
  readonly tunables: Tunables
}

/** Whether that work is offered here, in the way in which it came, and does not wait for itself. Throws the refusal. */
export function checkOffered({
  agentId,
  name,
  header,
  provided,
  streams,
}: Pick<StartFacts, 'agentId' | 'name' | 'header' | 'provided' | 'streams'>): Provided {
  if (!provided) throw new HermesError('CAPABILITY_NOT_FOUND', { message: `${agentId} does not provide ${name}` })
  if ((provided.contract.schemas.yields !== undefined) !== streams) {
    throw new HermesError('STREAM_UNSUPPORTED', {
      message: streams
        ? `${name} does not stream: use a plain call`
        : `${name} is a stream: it takes neither plain calls nor tasks`,
    })
  }
  if (header.path.includes(`${agentId}#${name}`)) {
    const path = [...header.path, `${agentId}#${name}`]
    throw new HermesError('CALL_CYCLE', {
      message: `the work would wait for itself: ${path.join(' → ')}`,
      details: { path },
    })
  }
  return provided
}

/** Whether a request may be served at all, before its payload is looked at. Throws the refusal. */
export function checkStart(facts: StartFacts): Provided {
  const { from, own, all, tunables } = facts
  if (facts.draining) throw new HermesError('DRAINING')
  const provided = checkOffered(facts)
  if (provided.contract.schemas.question) throw new HermesError('TASK_REQUIRED')
  if (own >= tunables.inFlightPerPeer || all >= tunables.inFlightPerNode) {
    throw new HermesError('BUSY', { message: `${own} calls of ${from} are in flight here`, retryAfterMs: 100 })
  }
  return provided
}
