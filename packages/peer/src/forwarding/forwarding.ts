import {
  decodePayload,
  ERROR_TABLE,
  type ErrorRow,
  HermesError,
  isHermesError,
  type PublicKey,
  readResponsePayload,
} from '@hermes-peer/protocol'
import type { ForwardOptions, ForwardTarget, HandedOn } from '../api.ts'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Dedup, WorkRecord } from '../delivery/dedup.ts'
import type { Arrived, Foreign } from '../delivery/foreign.ts'
import type { Incoming } from '../delivery/inbox.ts'
import type { Outbox } from '../delivery/outbox.ts'
import type { Directory } from '../directory/directory.ts'
import type { Identities } from '../identity/identities.ts'
import type { Link } from '../link/link.ts'
import type { Links } from '../link/links.ts'
import type { CallGuard } from '../policy/guard.ts'
import type { Random } from '../random.ts'
import type { Need, Ranking } from '../routing/router.ts'
import type { Telemetry } from '../telemetry/events.ts'
import { type ArrivalsOptions, createArrivals } from './arrivals.ts'
import { createHopSender, type HopSender, idsOf, sizeOf, withHops } from './hop-sender.ts'
import { type Ask, createKeys, type Keys } from './keys.ts'
import { createOwnWords, type OwnWords } from './own-words.ts'
import { createPassOn, type HandedTasks, type PassOn } from './pass-on.ts'
import { haveProofs } from './proofs.ts'
import { chooseNext } from './target.ts'
import { createTaskHandOn, type TaskHandOn, type TaskPiece } from './task-hand-on.ts'
import { createWays, type Way, type Ways } from './ways.ts'

export interface ForwardingOptions {
  readonly agentId: string
  readonly networkName: string
  /** Those that this agent signs with, the newest first. */
  readonly ownKeys: () => readonly PublicKey[]
  readonly identities: Identities
  readonly links: Links
  readonly outbox: Outbox
  readonly dedup: Dedup
  readonly directory: Pick<Directory, 'keysOf' | 'reach'>
  readonly pending: ArrivalsOptions['pending']
  readonly ask: Ask
  readonly clock: Clock
  readonly random: Random
  readonly tunables: Tunables
  readonly telemetry: Telemetry
  readonly policy: CallGuard
  readonly rank: (need: Need, options: { signal: AbortSignal }) => Promise<Ranking>
  readonly maxEnvelopeBytes: number
  /** Tasks that are elsewhere now. */
  readonly handedTasks: HandedTasks
}

/** Work that a handler has been started with, as far as handing it on needs to know it. */
export interface Piece {
  readonly incoming: Incoming
  readonly record: WorkRecord
  /** Monotonic ms. */
  readonly deadline: number
  readonly signal: AbortSignal
  readonly aborted: HermesError | undefined
}

/** Hands work on to other agents, passes their answers back, and takes part in verifying what has come over hops. */
export interface Forwarding {
  readonly foreign: Foreign
  readonly keys: Pick<Keys, 'keep' | 'document'>
  /** Sends the message being served on. Rejects before anything is sent. */
  handOn(piece: Piece, target: ForwardTarget, options: ForwardOptions): Promise<HandedOn>
  /** Hands a task on, as `TaskHandOn` says. */
  handOnTask(piece: TaskPiece, target: ForwardTarget, options: ForwardOptions): Promise<HandedOn>
  /** Goes on handing a task to the agent that an earlier life has chosen. */
  resumeTask(piece: TaskPiece, agentId: string): Promise<void>
  /** What the originator is told when a handler lets a failed handing-on end it; undefined for any other throw. */
  told(thrown: unknown): HermesError | undefined
  /** Another attempt of work that was handed on. Throws the refusal. */
  again(incoming: Incoming, record: WorkRecord): void
  /** The originator cancels what was handed on. */
  cancel(incoming: Incoming, record: WorkRecord): void
  /** The neighbour that it came from needs it no longer; false when nothing of it came from there. */
  withdrawn(neighbour: string, messageId: string): boolean
  readonly passOn: PassOn
  /** The last link of an agent is gone. */
  lost(agentId: string, reason: HermesError): void
  /** Whether an attempt that was handed on arrived, nobody knows. */
  unconfirmed(leaf: string, reason: HermesError): void
  /** An agent has begun a later life than `epoch`. */
  restarted(agentId: string, epoch: number, reason: HermesError): void
  /** Whether an answer of that agent is awaited here for somebody else. */
  awaits(agentId: string): boolean
  /** Messages on their way through here. */
  readonly size: number
  stop(): void
}

class Mark {
  readonly next: string
  constructor(next: string) {
    this.next = next
  }
}

export function createForwarding(options: ForwardingOptions): Forwarding {
  return new HopForwarding(options)
}

class HopForwarding implements Forwarding {
  readonly foreign: Foreign
  readonly keys: Keys
  readonly #options: ForwardingOptions
  readonly #ways: Ways
  readonly #own: OwnWords
  readonly #hops: HopSender
  readonly #tasks: TaskHandOn
  readonly passOn: PassOn
  /** Errors thrown to handlers here: only these are told as they are. */
  readonly #refusals = new WeakSet<HermesError>()

  constructor(options: ForwardingOptions) {
    this.#options = options
    const { agentId, networkName, ownKeys, identities, links, directory, ask, clock, tunables, telemetry, pending } =
      options
    this.#ways = createWays({ clock, most: tunables.waysKept })
    this.#own = createOwnWords(options)
    this.#hops = createHopSender({ ...options, ways: this.#ways })
    this.keys = createKeys({
      agentId,
      ownKeys,
      networkName,
      identities,
      clock,
      tunables,
      keysOf: (other) => directory.keysOf(other),
      ask,
    })
    const common = { ...options, ways: this.#ways, hops: this.#hops, keys: this.keys }
    this.#tasks = createTaskHandOn(common)
    this.passOn = createPassOn({
      ...common,
      linkTo: (next) => this.#nextOf({ next }),
      hopLeft: (incoming) => this.#hopLeft(incoming),
    })
    this.foreign = createArrivals({
      agentId,
      networkName,
      links,
      keys: this.keys,
      ways: this.#ways,
      tunables,
      telemetry,
      pending,
      pass: (way, arrived, leaf) => this.#pass(way, arrived, leaf),
    })
  }

  get size(): number {
    return this.#ways.size
  }

  handOn(piece: Piece, target: ForwardTarget, options: ForwardOptions): Promise<HandedOn> {
    return this.#marked(this.#handOn(piece, target, options))
  }

  handOnTask(piece: TaskPiece, target: ForwardTarget, options: ForwardOptions): Promise<HandedOn> {
    return this.#marked(this.#tasks.handOn(piece, target, options).then((next) => new Mark(next)))
  }

  async resumeTask(piece: TaskPiece, agentId: string): Promise<void> {
    await this.#marked(this.#tasks.resume(piece, agentId).then((next) => new Mark(next)))
  }

  /** What it rejects with may be told to the originator as it is. */
  async #marked(handing: Promise<Mark>): Promise<HandedOn> {
    try {
      return (await handing) as unknown as HandedOn
    } catch (error) {
      const refusal = HermesError.from(error)
      this.#refusals.add(refusal)
      throw refusal
    }
  }

  told(thrown: unknown): HermesError | undefined {
    if (!isHermesError(thrown) || !this.#refusals.has(thrown)) return undefined
    return (ERROR_TABLE[thrown.code] as ErrorRow).local ? undefined : thrown
  }

  async #handOn(piece: Piece, target: ForwardTarget, options: ForwardOptions): Promise<Mark> {
    const { agentId: self, rank, policy, clock } = this.#options
    const { incoming, record, signal } = piece
    still(piece)
    this.#ways.room()
    const wanted = Math.min(piece.deadline, clock.monotonic() + (options.timeoutMs ?? Number.POSITIVE_INFINITY))
    const ranked = (need: Need) => rank(need, { signal })
    const candidates = await chooseNext({ incoming, self, target, options, policy, rank: ranked })
    const link = await this.#reach(candidates, incoming, signal)
    await haveProofs(this.keys, incoming, incoming.link, signal)
    still(piece)
    if (link.state !== 'open') {
      throw new HermesError('PEER_UNREACHABLE', { message: `the link to ${link.remote.agentId} was lost` })
    }
    // The attempt that joined last is the one that the originator waits for now.
    const attempts = [incoming, ...(record.latest ? [record.latest] : [])]
    this.#hops.send(incoming, link, { back: incoming.link, record, budgetMs: wanted - clock.monotonic() })
    const { agentId, epoch } = link.remote
    record.state = 'forwarded'
    record.next = { agentId, epoch }
    record.waiters = []
    record.latest = undefined
    for (const other of attempts.slice(1)) this.#sendQuietly(other, link, record, wanted - clock.monotonic())
    return new Mark(agentId)
  }

  /** The first candidate that can be reached and takes a message of that size. */
  async #reach(candidates: readonly string[], incoming: Incoming, signal: AbortSignal): Promise<Link> {
    const { links, directory } = this.#options
    const size = sizeOf(incoming.frame)
    let last: HermesError | undefined
    for (const agentId of candidates) {
      try {
        const link = links.get(agentId) ?? (await directory.reach(agentId, signal))
        const limit = link.remote.limits.max_envelope_bytes
        if (size > limit) {
          throw new HermesError('PAYLOAD_TOO_LARGE', {
            message: `the message has ${size} bytes, ${agentId} takes ${limit}`,
            details: { size, limit },
          })
        }
        if (link.blocked) throw new HermesError('BUSY', { message: `${agentId} does not read what is sent to it` })
        return link
      } catch (error) {
        if (signal.aborted) throw HermesError.from(signal.reason, 'CANCELLED')
        last = HermesError.from(error, 'PEER_UNREACHABLE')
      }
    }
    throw last ?? new HermesError('PEER_UNREACHABLE')
  }

  /** For what nobody waits for here: a failure is told back along the hops. */
  #sendQuietly(incoming: Incoming, link: Link, record: WorkRecord, budgetMs: number): void {
    try {
      this.#hops.send(incoming, link, { back: incoming.link, record, budgetMs })
    } catch (error) {
      this.#own.tell(incoming.link, incoming.header, incoming.leaf, HermesError.from(error))
    }
  }

  again(incoming: Incoming, record: WorkRecord): void {
    const { telemetry, clock } = this.#options
    const { header, from, leaf } = incoming
    const way = this.#ways.get(leaf)
    if (way) {
      // The same attempt by another path: the later path is the one that is there.
      const { agentId, epoch } = incoming.link.remote
      way.back = { agentId, epoch }
      telemetry.emit('dedup.joined', { ...idsOf(header), from })
      return
    }
    const link = this.#nextOf(record)
    if (!link) {
      throw new HermesError('PEER_UNREACHABLE', {
        message: `${record.next?.agentId}, who has this work, cannot be reached`,
        details: { agent: record.next?.agentId },
      })
    }
    this.#hopLeft(incoming)
    const budgetMs = incoming.budgetMs - (clock.monotonic() - incoming.receivedAt)
    this.#hops.send(incoming, link, { back: incoming.link, record, budgetMs })
    telemetry.emit('dedup.joined', { ...idsOf(header), from })
  }

  cancel(incoming: Incoming, record: WorkRecord): void {
    const link = this.#nextOf(record)
    if (!link) return
    const { header, frame } = incoming
    if (frame.hops.length < header.max_hops) this.#hops.send(incoming, link, { budgetMs: header.timeout_ms })
    else this.#own.giveUp(link, header, record.expiresAt)
  }

  withdrawn(neighbour: string, messageId: string): boolean {
    const gone = [...this.#ways.all()].filter(
      ({ back, record }) => back.agentId === neighbour && record?.messageId === messageId,
    )
    for (const way of gone) this.#abandon(way)
    return gone.length > 0
  }

  lost(agentId: string, reason: HermesError): void {
    const { clock, links, tunables } = this.#options
    for (const way of this.#ways.all()) if (way.next.agentId === agentId) this.#broken(way, reason)
    const orphaned = () => [...this.#ways.all()].some(({ back }) => back.agentId === agentId)
    if (!orphaned()) return
    clock.after(tunables.callerGraceMs, () => {
      if (links.has(agentId)) return
      for (const way of this.#ways.all()) if (way.back.agentId === agentId) this.#abandon(way)
    })
  }

  unconfirmed(leaf: string, reason: HermesError): void {
    const way = this.#ways.get(leaf)
    if (way) this.#broken(way, reason)
  }

  restarted(agentId: string, epoch: number, reason: HermesError): void {
    for (const way of this.#ways.all()) {
      if (way.next.agentId === agentId && way.next.epoch <= epoch) {
        this.#broken(way, reason)
        // That life will never answer.
        this.#ways.end(way)
      } else if (way.back.agentId === agentId && way.back.epoch <= epoch) this.#abandon(way)
    }
  }

  awaits(agentId: string): boolean {
    return this.#ways.awaits(agentId)
  }

  stop(): void {
    this.#ways.clear()
  }

  /** An answer, verified as far as it can be here, goes on as it came. */
  #pass(way: Way, arrived: Arrived, leaf: string): void {
    const { frame, header, link } = arrived
    const { links, outbox, dedup, telemetry } = this.#options
    if (way.taken) {
      this.#ways.end(way)
      way.taken({ is: 'answered', arrived })
      return
    }
    // An ack is not the end of a request.
    if (header.message_type !== 'response' && header.message_type !== 'error') {
      telemetry.emit('answer.late', { from: link.remote.agentId, inReplyTo: way.leaf })
      return
    }
    if (telemetry.wants('envelope.received')) {
      telemetry.emit('envelope.received', {
        ...idsOf(header),
        messageType: header.message_type,
        from: header.sender.agent_id,
        leaf,
        sequence: 0,
        bytes: header.payload_size,
      })
    }
    this.#ways.end(way)
    const back = links.get(way.back.agentId)
    // Without a link it is not kept: who made it remembers it, and is asked by `hermes.outcome` through here.
    if (!back) return
    const size = sizeOf(frame)
    const limit = Math.min(this.#options.maxEnvelopeBytes, back.remote.limits.max_envelope_bytes)
    if (size > limit) {
      const error = new HermesError('INVALID_RESULT', {
        message: `the answer has ${size} bytes, ${way.back.agentId} takes ${limit}`,
        details: { size, limit },
      })
      this.#own.tell(back, way.header, way.leaf, error)
      return
    }
    const { record } = way
    const originator = way.header.sender.agent_id
    const direct = way.back.agentId === originator
    const fetched = direct && record ? () => dedup.settle(originator, record) : undefined
    outbox.pass(back, withHops(frame, []), header, leaf, fetched)
    if (way.taskId !== undefined && header.message_type === 'response') this.#newsPassed(way, way.taskId, arrived)
    if (telemetry.wants('forward.answered')) {
      telemetry.emit('forward.answered', {
        ...idsOf(header),
        messageType: header.message_type,
        from: header.sender.agent_id,
        to: originator,
      })
    }
  }

  #newsPassed({ header }: Way, taskId: string, { header: answer, frame }: Arrived): void {
    try {
      const { output } = readResponsePayload(decodePayload(answer.content_type, frame.payload))
      this.#options.handedTasks.passed(header.sender.agent_id, taskId, output)
    } catch {
      // What cannot be read here, the owner judges.
    }
  }

  /** Whether the work was started there, nobody here can know: the originator decides by its effects. */
  #broken(way: Way, reason: HermesError): void {
    if (way.taken) {
      this.#ways.end(way)
      way.taken({ is: 'lost', reason })
      return
    }
    if (way.told) return
    way.told = true
    const { links, telemetry } = this.#options
    const { header, next, leaf } = way
    if (telemetry.wants('forward.lost')) {
      telemetry.emit('forward.lost', { ...idsOf(header), to: next.agentId, code: reason.code })
    }
    const back = links.get(way.back.agentId)
    if (!back) return
    const error = new HermesError('PEER_UNREACHABLE', {
      message: `${next.agentId}, to whom it was handed on, was lost before it answered`,
      details: { agent: next.agentId },
    })
    this.#own.tell(back, header, leaf, error)
  }

  /** Nobody is left to answer: the next agent is told, unless the same work is awaited by another path. */
  #abandon(way: Way): void {
    this.#ways.end(way)
    const { record, next, header } = way
    if (!record) return
    for (const other of this.#ways.all()) if (other.record === record) return
    const link = this.#options.links.get(next.agentId)
    if (link?.remote.epoch === next.epoch) this.#own.giveUp(link, header, record.expiresAt)
  }

  /** The link to the life that has the work. */
  #nextOf({ next }: Pick<WorkRecord, 'next'>): Link | undefined {
    const link = next && this.#options.links.get(next.agentId)
    return link?.remote.epoch === next?.epoch ? link : undefined
  }

  #hopLeft({ header, frame, via }: Incoming): void {
    if (frame.hops.length < header.max_hops) return
    const path = [header.sender.agent_id, ...via, this.#options.agentId]
    throw new HermesError('TTL_EXPIRED', {
      message: `${header.max_hops} hops are allowed, and taken: ${path.join(' → ')}`,
      details: { path, max_hops: header.max_hops },
    })
  }
}

/** Throws when the work is no longer this agent's to hand on. */
function still({ record, aborted }: Piece): void {
  if (aborted) throw aborted
  if (record.state === 'forwarded') {
    throw new HermesError('INVALID_OPTION', {
      message: `it has been handed on to ${record.next?.agentId} already`,
      details: { field: 'target' },
    })
  }
  if (record.state === 'done') throw new HermesError('TIMEOUT', { message: 'it has been answered already' })
}
