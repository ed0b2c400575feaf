import type { MessageType } from '@hermes-peer/protocol'
import type { DecisionRecord } from '../routing/record.ts'

/** Ids that tie an event to a collaboration. */
export interface Ids {
  readonly messageId: string
  readonly correlationId?: string | undefined
  readonly traceId: string
}

/**
 * Every structured event, by name. Names and types are API; log prose is not. `at` (wall clock, ms) is added to each.
 */
export interface EventMap {
  /** A key must not speak for that agent any more; its links have been cut. */
  'identity.revoked': { agentId: string; fingerprint: string; reason: string }
  /** This peer runs under a new key; what went on under the old one still does. */
  'identity.rotated': { agentId: string; fingerprint: string; serial: number }
  /** The node of a former key of this peer has stopped. */
  'identity.retired': { agentId: string; fingerprint: string }
  'peer.started': { agentId: string; peerId: string; addresses: readonly string[] }
  /** It takes no new work; what runs has `drainMs` to end. */
  'peer.draining': { agentId: string; running: number; handedBack: number; drainMs: number }
  /** `aborted`: what still ran at the end of its time. */
  'peer.stopped': { agentId: string; aborted: number }
  /** Something an operator should read once: what the trust mode admits, what was given up. */
  'peer.notice': { text: string }

  'link.up': { agentId: string; linkId: string; address: string; direction: 'inbound' | 'outbound'; offsetMs: number }
  'link.down': { agentId: string; linkId: string; code: string; reason: string; last: boolean }
  'link.probe': { agentId: string; linkId: string; unanswered: number }
  /** A clock that is too far off to be followed: calls over that link will be refused as expired or from the future. */
  'link.clock': { agentId: string; linkId: string; offsetMs: number }
  /** There is a slot at that relay: this peer can be called at these addresses. */
  'relay.reserved': { relay: string; addresses: readonly string[] }
  /** There is none, or no longer; it is asked for again. `reachable`: whether this peer has any other address. */
  'relay.lost': { relay: string; reason: string; retryInMs: number; reachable: boolean }
  'link.reconnect': { agentId: string; inMs: number; failures: number }
  'handshake.refused': {
    code: string
    reason: string
    address: string
    peerId: string
    agentId?: string | undefined
    by: 'us' | 'them'
  }

  /** `maker`: present when this agent only passes it on. */
  'envelope.sent': Ids & {
    messageType: MessageType
    to: string
    leaf: string
    sequence: number
    bytes: number
    maker?: string
  }
  'envelope.received': Ids & { messageType: MessageType; from: string; leaf: string; sequence: number; bytes: number }
  /** Released by the window, in the order that the sender meant. */
  'envelope.admitted': Ids & { from: string; epoch: number; sequence: number; ordered: boolean; attempt: number }
  /** Not accepted; `from` is the agent at the other end of the link, which need not be its maker. */
  'envelope.refused': {
    code: string
    reason: string
    from: string
    messageId?: string | undefined
    messageType?: MessageType | undefined
  }
  'window.gap': { from: string; sequence: number; count: number; reason: 'timeout' | 'overflow' | 'reconnect' }
  'dedup.joined': Ids & { from: string }
  'dedup.stored': Ids & { from: string }
  'dedup.conflict': Ids & { from: string }
  /** An answer to nothing that is pending: too late, or never asked for. */
  'answer.late': { from: string; inReplyTo: string }

  'directory.joined': { agentId: string; capabilities: readonly string[] }
  'directory.changed': { agentId: string; capabilities: readonly string[] }
  'directory.suspect': { agentId: string }
  'directory.offline': { agentId: string }
  'directory.left': { agentId: string }
  /** A directory cannot be reached, and can again; each told once. */
  'directory.unreachable': { source: string; reason: string }
  'directory.reachable': { source: string }
  /** It could not be asked for a capability, so what it said that long ago stands in. */
  'directory.stale': { capability: string; source: string; ageMs: number }
  'presence.refused': { code: string; reason: string }
  'presence.sent': { peers: number; state: string }

  'call.started': Ids & { capability: string }
  /** How it was chosen, also when nobody was: `rerun` makes the choice again from it. */
  'call.decided': Ids & { capability: string; decision: DecisionRecord }
  'call.chosen': Ids & {
    capability: string
    agentId: string
    reasons: readonly string[]
    score: number
    attempt: number
  }
  'call.attempt': Ids & { capability: string; agentId: string; attempt: number; leaf: string }
  'call.failover': Ids & { capability: string; from: string; to: string; code: string }
  'call.retry': Ids & { capability: string; agentId: string; code: string; inMs: number }
  'call.outcome': Ids & { agentId: string; state: 'running' | 'done' | 'unseen' | 'unknown' }
  'call.cancelled': Ids & { capability: string; agentId: string; reason: string }
  'call.ended': Ids & { capability: string; agentId?: string | undefined; code: string; ms: number; attempts: number }

  /** An agent is not asked for a capability any more, as it fails. */
  'breaker.opened': { agentId: string; capability: string; because: string; probeInMs: number }
  'breaker.probe': { agentId: string; capability: string }
  'breaker.closed': { agentId: string; capability: string }

  /** The embedding function failed, so that the words alone tell what is meant. */
  'intent.fallback': { code: string; reason: string }

  'session.opened': { agentId: string; sessionId: string; by: 'us' | 'them' }
  'session.closed': { agentId: string; sessionId: string; code: string }

  'handler.queued': Ids & { capability: string; from: string; waiting: number }
  'handler.started': Ids & { capability: string; from: string; attempt: number; queuedMs: number }
  'handler.cancelled': Ids & { capability: string; from: string; reason: string }
  'handler.ended': Ids & { capability: string; from: string; code: string; ms: number; cause?: unknown }

  'task.accepted': Ids & { taskId: string; capability: string; from: string }
  'task.joined': Ids & { taskId: string; from: string }
  /** Each state that is stored, the ends included; `code` of an end. */
  'task.state': Ids & { taskId: string; capability: string; from: string; state: string; code?: string | undefined }
  /** Another agent has it from now on, and answers for it. */
  'task.handed': Ids & { taskId: string; capability: string; from: string; to: string }
  /** The other side: an agent has stored a task of ours. */
  'task.acknowledged': Ids & { taskId: string; agentId: string }
  /** Its news go on after `after` once the agent can be asked again. */
  'task.resumed': { taskId: string; agentId: string; after: number }
  /** A draft that nobody has acknowledged is sent again. */
  'outbox.resent': Ids & { agentId: string; attempt: number }
  /** Something could not be stored; it is tried again unless it was refused for it. */
  'journal.failed': { what: string; cause: unknown }
  /** Handed on; `from` is the originator, `hops` how often it has been handed on by now. */
  'forward.sent': Ids & {
    messageType: MessageType
    from: string
    to: string
    hops: number
    budgetMs: number
  }
  /** An answer was passed back; `from` made it, `to` asked. */
  'forward.answered': Ids & { messageType: MessageType; from: string; to: string }
  /** The agent that it was handed on to was lost before it answered. */
  'forward.lost': Ids & { to: string; code: string }
  'stream.opened': Ids & { agentId: string; direction: 'inbound' | 'outbound' }
  /** A reader tells its writer to pause, or to go on; told by both. `waiting`: bytes that wait for the reader. */
  'stream.flow': Ids & {
    agentId: string
    direction: 'inbound' | 'outbound'
    side: 'reader' | 'writer'
    paused: boolean
    waiting: number
  }
  /** Chunks sent and received, bytes of data in both directions; `extra`: what came after the end and was ignored. */
  'stream.ended': Ids & {
    agentId: string
    direction: 'inbound' | 'outbound'
    code: string
    sent: number
    received: number
    bytes: number
    extra: number
  }
  /** Refused before it was one. */
  'stream.refused': { code: string; reason: string; peerId: string; agentId?: string | undefined }
  /** How far a payload has come that travels apart from its envelope. */
  'payload.progress': Ids & { agentId: string; direction: 'in' | 'out'; bytes: number; total: number }

  /** The rules that count from now on. */
  'policy.loaded': {
    source: string
    mode: 'enforce' | 'audit'
    serve: number
    call: number | undefined
    again: boolean
  }
  /** A changed policy cannot be used: the rules before it go on. */
  'policy.failed': { source: string; reason: string }
  /**
   * What policy decided of work that others asked for, and what it forbade this agent to ask for: by which rule (`policy.yaml:14`, the
   * policy itself where no rule is about it), for whom of those that it came by, and with `constraint` at which place of the input.
   * `audit`: it was not refused all the same.
   */
  'policy.decided': Partial<Ids> & {
    side: 'serve' | 'call'
    from?: string
    via?: readonly string[]
    to?: string | undefined
    capability: string
    effect: 'allow' | 'deny'
    rule: string
    because: 'allowed' | 'denied' | 'constraint' | 'no rule' | 'not judged' | 'quota' | 'delegation'
    subject?: string
    pointer?: string
    audit: boolean
  }

  'event.received': Ids & { from: string; name: string }
  /** A listener of the user threw; the runtime goes on. */
  'listener.failed': { where: string; cause: unknown }
}

export type EventName = keyof EventMap
export type EventOf<K extends EventName> = EventMap[K] & { readonly type: K; readonly at: number }
export type AnyEvent = { [K in EventName]: EventOf<K> }[EventName]

export interface PeerEvents {
  /** Listens to one kind of event; returns the way to stop. Listeners run synchronously and must be quick. */
  on<K extends EventName>(type: K, listener: (event: EventOf<K>) => void): () => void
  /** Listens to all. */
  onAny(listener: (event: AnyEvent) => void): () => void
}

export interface Telemetry {
  readonly events: PeerEvents
  /** Whether anybody listens: ask before building an event on the hot path. */
  wants(type: EventName): boolean
  emit<K extends EventName>(type: K, event: EventMap[K]): void
}
