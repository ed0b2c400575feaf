import {
  decodeHop,
  type Header,
  HermesError,
  isAnswer,
  leafOf,
  type MessageType,
  partInDomain,
  type RootMemory,
  type SignedHop,
  verifyEnvelope,
  verifyHops,
  verifyPayload,
} from '@hermes-peer/protocol'
import type { Tunables } from '../defaults.ts'
import type { Arrived, Foreign, ForeignIncoming, ForeignSink } from '../delivery/foreign.ts'
import { createRootMemory } from '../delivery/root-memory.ts'
import type { Link } from '../link/link.ts'
import type { Links } from '../link/links.ts'
import type { Telemetry } from '../telemetry/events.ts'
import type { Keys } from './keys.ts'
import type { Way, Ways } from './ways.ts'

export interface ArrivalsOptions {
  readonly agentId: string
  readonly networkName: string
  readonly links: Links
  readonly keys: Keys
  readonly ways: Ways
  readonly tunables: Tunables
  readonly telemetry: Telemetry
  /** Attempts of this agent itself that wait for their answer. */
  readonly pending: {
    /** Whether it went out over a link of that neighbour and has no answer yet. */
    awaits(leaf: string, neighbour: string): boolean
    /** Ends it: what came cannot be told from a forgery. */
    distrust(leaf: string, error: HermesError): void
  }
  /** Passes an answer on; `leaf` is its own. */
  pass(way: Way, arrived: Arrived, leaf: string): void
}

/** What can be handed on at all: answers go back without hops, a heartbeat belongs to one link. */
const MAY_HAVE_HOPS: ReadonlySet<MessageType> = new Set(['request', 'submit', 'event', 'cancel'])

/** Verifies what others than the neighbour have made, and asks the neighbour for manifests where a key is not known. */
export function createArrivals(options: ArrivalsOptions): Foreign {
  const { agentId: self, networkName, links, keys, ways, tunables, telemetry, pending, pass } = options
  const roots: RootMemory = createRootMemory()
  /** Frames that wait for a manifest, by link: bounded by `framesAwaitingKeys` each, so that none takes the places of others. */
  const waiting = new Map<Link, number>()

  /** Asks once for what is missing, then judges again. False: it was asked for, or too much waits. */
  const learn = (arrived: Arrived, missing: readonly string[], again: () => void): boolean => {
    const { link } = arrived
    const wait = waiting.get(link) ?? 0
    if (wait >= tunables.framesAwaitingKeys || missing.every((agentId) => keys.vain(link, agentId))) return false
    waiting.set(link, wait + 1)
    const { sender } = arrived.header
    const signed = (agentId: string) => (agentId === sender.agent_id ? sender.key : undefined)
    void Promise.all(missing.map((agentId) => keys.learn(link, agentId, signed(agentId)))).then(() => {
      const left = (waiting.get(link) ?? 1) - 1
      if (left > 0) waiting.set(link, left)
      else waiting.delete(link)
      if (link.state !== 'closed') again()
    })
    return true
  }

  const handedOn = (arrived: Arrived, sink: ForeignSink, asked: boolean): void => {
    const { link, frame, header, receivedAt } = arrived
    const { hops } = frame
    const from = header.sender.agent_id
    let leaf: string | undefined
    try {
      if (!MAY_HAVE_HOPS.has(header.message_type)) {
        throw new HermesError('MALFORMED', { message: `a ${header.message_type} has no hops` })
      }
      const via = hops.map(({ body }) => decodeHop(body).forwarder)
      const signed = (agentId: string) => (agentId === from ? header.sender.key : undefined)
      const unproven = [...new Set([from, ...via])].filter((agentId) => !keys.find(agentId, signed(agentId)))
      if (unproven.length > 0) {
        lastHopHolds(arrived, self)
        if (!asked && learn(arrived, unproven, () => handedOn(arrived, sink, true))) return
      }
      const missing = unproven.filter((agentId) => !keys.find(agentId))
      if (missing.length > 0) {
        // Nothing but the neighbour is proven; it is told, so that the originator hears of it along the hops.
        leaf = leafOf(frame.header)
        throw new HermesError('NOT_ALLOWED', {
          message: `${missing.join(', ')}: not admitted here, or its key cannot be found out`,
          details: { agents: missing },
        })
      }
      const key = keys.find(from, header.sender.key)
      if (!key) {
        throw new HermesError('WRONG_SENDER', { message: `${header.sender.key} is not the key of ${from}` })
      }
      const name = verifyEnvelope(frame, key, roots)
      verifyPayload(header, frame)
      const last = lastHop(arrived, name, () => {
        leaf = name
      })
      leaf = name
      const linked = links.get(from)
      const offsetMs = linked?.offsetMs ?? 0
      // Nobody has measured the clock of an agent without a link; the budget of the hops decides.
      const toleranceMs = linked ? tunables.clockToleranceMs : tunables.maxClockOffsetMs
      sink.accept({
        header,
        leaf,
        payload: frame.payload,
        from,
        link,
        frame,
        via,
        // The time of a submit is that for its ack; how long the task may take, its forwarder says.
        budgetMs: header.message_type === 'submit' ? last : Math.min(last, header.timeout_ms),
        receivedAt,
        expiresAt: header.expires_at - offsetMs + toleranceMs,
        offsetMs,
        toleranceMs,
      })
    } catch (error) {
      sink.refuse(arrived, leaf, HermesError.from(error))
    }
  }

  /** The budget that the last hop leaves. `authentic` is called when only the count of hops is wrong: that is told. */
  const lastHop = ({ link, frame, header }: Arrived, leaf: string, authentic: () => void): number => {
    const neighbour = link.remote.agentId
    try {
      const hop = verifyHops({
        header,
        leaf,
        hops: frame.hops,
        neighbour,
        self,
        keyOf: (agentId) => keys.verifier(agentId),
      })
      return hop?.budget_ms ?? 0
    } catch (error) {
      const refusal = HermesError.from(error)
      if (refusal.code !== 'TTL_EXPIRED') throw refusal
      authentic()
      const path = [header.sender.agent_id, ...frame.hops.map(({ body }) => decodeHop(body).forwarder), self]
      throw refusal.with({ details: { path, max_hops: header.max_hops } })
    }
  }

  const answer = (arrived: Arrived, sink: ForeignSink, asked: boolean): void => {
    const { link, frame, header, receivedAt } = arrived
    const neighbour = link.remote.agentId
    const from = header.sender.agent_id
    const { recipient } = header
    const to = 'agent_id' in recipient ? recipient.agent_id : undefined
    const awaited = header.in_reply_to as string
    const way = ways.get(awaited)
    const passing = way !== undefined && way.next.agentId === neighbour && way.header.sender.agent_id === to
    const ours = to === self && pending.awaits(awaited, neighbour)
    // Whoever is not the neighbour is judged only when somebody waits: else anyone could make us verify.
    const leaf = leafOf(frame.header)
    if (!passing && !ours) {
      if (from === neighbour) {
        sink.refuse(
          arrived,
          leaf,
          new HermesError('WRONG_RECIPIENT', { message: `an answer to ${to}, who does not wait` }),
        )
      } else telemetry.emit('answer.late', { from: neighbour, inReplyTo: awaited })
      return
    }
    try {
      const key = from === neighbour ? link.remote.key : keys.find(from, header.sender.key)
      // What is passed on can be proven to who waits for it only by a manifest.
      const missing = key === undefined || (passing && !keys.document(from, header.sender.key))
      if (missing && !asked && learn(arrived, [from], () => answer(arrived, sink, true))) return
      // Whose key is known is not believed under another one, and what waits for it goes on waiting.
      const known = key ?? keys.find(from) ?? (passing ? keys.named(from) : undefined)
      if (known) {
        if (known.fingerprint !== header.sender.key) {
          throw new HermesError('WRONG_SENDER', { message: `${header.sender.key} is not the key of ${from}` })
        }
        verifyEnvelope(frame, known, roots)
      }
      verifyPayload(header, frame)
      if (header.network !== networkName) throw new HermesError('WRONG_NETWORK')
      if (passing) {
        pass(way, arrived, leaf)
        return
      }
      if (!key) {
        const error = new HermesError('UNTRUSTED_ANSWER', {
          message: `${neighbour} brought an answer of ${from}, who is not admitted here, or whose key cannot be found out`,
          // What is not known may be known later; what is known and not admitted stays so.
          details: { agent: from, neighbour, known: keys.named(from) !== undefined },
        })
        pending.distrust(awaited, error)
        throw error
      }
      const linked = links.get(from)
      const offsetMs = linked?.offsetMs ?? 0
      const toleranceMs = linked ? tunables.clockToleranceMs : tunables.maxClockOffsetMs
      const incoming: ForeignIncoming = {
        header,
        leaf,
        payload: frame.payload,
        from,
        link,
        frame,
        via: [],
        budgetMs: header.timeout_ms,
        receivedAt,
        expiresAt: header.expires_at - offsetMs + toleranceMs,
        offsetMs,
        toleranceMs,
      }
      sink.accept(incoming)
    } catch (error) {
      // What the neighbour says in its own name counts against it; what it passes on it need not be able to judge.
      sink.refuse(arrived, from === neighbour ? undefined : leaf, HermesError.from(error))
    }
  }

  return {
    receive(arrived, sink) {
      if (isAnswer(arrived.header.message_type) && arrived.frame.hops.length === 0) answer(arrived, sink, false)
      else handedOn(arrived, sink, false)
    },
  }
}

/** The neighbour has signed that it hands this on to us. Throws `BAD_HOPS`. */
function lastHopHolds(
  { link, frame, header }: { link: Arrived['link']; frame: { hops: readonly SignedHop[] }; header: Header },
  self: string,
): void {
  const index = frame.hops.length - 1
  const signed = frame.hops[index] as SignedHop
  const hop = decodeHop(signed.body)
  const { agentId, key } = link.remote
  const holds =
    hop.forwarder === agentId &&
    hop.next === self &&
    hop.index === index &&
    header.sender.agent_id !== self &&
    key.verify(partInDomain('hop', signed.body), signed.signature)
  if (!holds) {
    throw new HermesError('BAD_HOPS', {
      message: `hop ${index} is not one by which ${agentId} hands on to us`,
      details: { index },
    })
  }
}
