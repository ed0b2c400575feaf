import {
  decodePayload,
  deepFreeze,
  HermesError,
  type JsonValue,
  readEventPayload,
  readRequestPayload,
} from '@hermes-peer/protocol'
import type { Dedup, Outcome, WorkKey } from '../delivery/dedup.ts'
import type { Incoming } from '../delivery/inbox.ts'
import type { Forwarding } from '../forwarding/forwarding.ts'
import type { ServeGuard } from '../policy/guard.ts'
import { askedOf } from './asked.ts'
import { bounded, errorOutcome, responseOutcome } from './outcomes.ts'
import type { Responder } from './responder.ts'
import type { StoredEvents } from './stored-events.ts'

/** A capability of the runtime itself. May give a promise: then it is answered when that settles. */
export type BuiltIn = (input: unknown, asker: Asker) => unknown

/** Who asks for a built-in, and in which life and session. */
export interface Asker {
  readonly agentId: string
  /** Names the attempt. */
  readonly leaf: string
  readonly offsetMs: number
  readonly epoch: number
  readonly sessionId: string | undefined
  /** The question has not come over hops. */
  readonly direct: boolean
  /** Calls back once the answer is known to have reached the neighbour that the question came from; `soon`: asks it to say so at once. */
  whenArrived(call: () => void, how: { soon: boolean }): void
}

export interface UnqueuedOptions {
  readonly forwarding: Pick<Forwarding, 'passOn'>
  readonly dedup: Dedup
  readonly builtIns: ReadonlyMap<string, BuiltIn>
  readonly responder: Responder
  readonly storedEvents: Pick<StoredEvents, 'receive' | 'knows'>
  readonly policy: Pick<ServeGuard, 'shape' | 'admit' | 'again' | 'resume'>
  /** An event for this agent. */
  event(incoming: Incoming, data: unknown): void
}

/** What is handled at once, without a handler's place: what every peer offers, and events. Throws the refusal. */
export interface Unqueued {
  builtIn(incoming: Incoming, name: string): void
  event(incoming: Incoming): void
}

interface Arrival {
  readonly call: () => void
  readonly soon: boolean
}

export function createUnqueued({
  dedup,
  builtIns,
  forwarding,
  responder,
  storedEvents,
  policy,
  event,
}: UnqueuedOptions): Unqueued {
  const send = ({ header, leaf, link }: Incoming, outcome: Outcome, arrival?: Arrival): void => {
    const neighbour = link.remote.agentId
    const sent = bounded(outcome, responder.limit(neighbour))
    const told = sent === outcome ? arrival : undefined
    responder.answer(neighbour, leaf, header, sent, told?.call)
    if (told?.soon) responder.askReceipt(neighbour)
  }
  const refuse = (incoming: Incoming, error: unknown): void =>
    send(incoming, errorOutcome(HermesError.from(error), incoming.header.content_type))

  const answer = (incoming: Incoming, name: string): void => {
    const { header, from, leaf, payload, link, via } = incoming
    const builtIn = builtIns.get(name)
    let arrival: Arrival | undefined
    const tell = (output: unknown): void => {
      let outcome: Outcome
      try {
        outcome = responseOutcome({ output, status: 'completed' }, header.content_type)
      } catch (error) {
        refuse(incoming, error)
        return
      }
      send(incoming, outcome, arrival)
    }
    try {
      if (!builtIn) throw new HermesError('CAPABILITY_NOT_FOUND', { message: `this peer does not offer ${name}` })
      const admission = policy.admit(askedOf(incoming))
      const { input } = readRequestPayload(decodePayload(header.content_type, payload))
      admission.leave()
      admission.judge(input)
      const output = builtIn(input, {
        agentId: from,
        leaf,
        offsetMs: link.offsetMs,
        epoch: header.epoch,
        sessionId: header.session_id,
        direct: via.length === 0,
        whenArrived: (call, { soon }) => {
          arrival = { call, soon }
        },
      })
      if (output instanceof Promise) output.then(tell, (error: unknown) => refuse(incoming, error))
      else tell(output)
    } catch (error) {
      refuse(incoming, error)
    }
  }
  /** The data of an event that policy lets in. Throws the refusal. */
  const judged = (incoming: Incoming): JsonValue => {
    const { header, payload } = incoming
    const admission = policy.admit(askedOf(incoming))
    try {
      const { data } = readEventPayload(decodePayload(header.content_type, payload))
      deepFreeze(data)
      admission.judge(data)
      return data
    } finally {
      admission.leave()
    }
  }

  const storedEvent = (incoming: Incoming): void => {
    // Its mark in the journal tells whether it has come before, also to an earlier life: then it is not judged again.
    if (storedEvents.knows(incoming)) {
      storedEvents.receive(incoming, null)
      return
    }
    let data: JsonValue
    try {
      data = judged(incoming)
    } catch (error) {
      // Its sender waits for an ack, and would send it for a day.
      if (HermesError.from(error).source === 'policy') refuse(incoming, error)
      throw error
    }
    storedEvents.receive(incoming, data)
  }

  return {
    builtIn(incoming, name) {
      const passed = forwarding.passOn(incoming, name)
      if (passed === undefined) {
        answer(incoming, name)
        return
      }
      passed.then(
        (asked) => {
          if (!asked) answer(incoming, name)
        },
        (error: unknown) => refuse(incoming, error),
      )
    },
    event(incoming) {
      const { header, from, leaf } = incoming
      if (header.ack === 'stored') {
        storedEvent(incoming)
        return
      }
      const data = judged(incoming)
      const record = dedup.begin(from, header.message_id, workKey(incoming), incoming.expiresAt, leaf)
      if (!record) throw new HermesError('BUSY')
      record.state = 'done'
      record.waiters = []
      // Over hops there is no window: only this record keeps it from being heard again.
      if (incoming.via.length === 0) dedup.settle(from, record)
      event(incoming, data)
    },
  }
}

/** What makes two envelopes the same piece of work. */
export function workKey({ header }: Incoming): WorkKey {
  return {
    messageType: header.message_type,
    capability: header.target_capability,
    payloadSha256: header.payload_sha256,
  }
}
