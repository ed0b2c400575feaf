import { encodeRefusal, HermesError, LIMITS, LINK_PROTOCOL, SIGNATURE_LENGTH } from '@hermes-peer/protocol'
import type { Clock, Timer } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Identities } from '../identity/identities.ts'
import type { OwnInstance } from '../identity/own-instance.ts'
import type { Channel, Network } from '../network/network.ts'
import type { Random } from '../random.ts'
import { withSignal } from '../signals.ts'
import type { Telemetry } from '../telemetry/events.ts'
import { createHandshakeGate } from './admission.ts'
import { ByteQueue } from './byte-queue.ts'
import { type HandshakeResult, runHandshake } from './handshake.ts'
import { createLink, type DrivenLink, type Link } from './link.ts'
import type { LinkSelf } from './remote.ts'

/** Whom to link to. */
export interface LinkTarget {
  /** The agent that must answer. Absent: whoever does. */
  agentId?: string | undefined
  peerId?: string | undefined
  addresses: readonly string[]
  /** The user gave the address. */
  chosen?: boolean
  /** Makes a link although there is one: either end has a newer key. */
  renew?: boolean
}

export interface Links {
  /** The link that new envelopes to an agent go over. */
  get(agentId: string): Link | undefined
  /** Whether any link of that agent is left, retired ones included. */
  has(agentId: string): boolean
  all(): Iterable<Link>
  /**
   * The existing link, or a new one. Rejects with `PEER_UNREACHABLE`, a code of the handshake, or the signal's reason.
   * Calls for one target share one dial, which goes on when one of them gives up.
   */
  connect(target: LinkTarget, signal?: AbortSignal): Promise<Link>
  /** Whether any link to that peer is left. */
  linked(peerId: string): boolean
  /** There is a direct connection to a peer now: a link that goes through a relay moves over to it. */
  direct(peerId: string): void
  /** Gives back places that connections without a link hold, when these run short. */
  relieve(): void
  /** Takes part in accepting links from now on. */
  start(): void
  /** Closes all with `reason`. */
  stop(reason: HermesError): void
}

export interface LinksEvents {
  up(link: Link): void
  frame(link: Link, body: Uint8Array): void
  unblocked(link: Link): void
  /** `last`: no other link of that agent is left, so this is a disconnect. */
  down(link: Link, reason: HermesError, last: boolean): void
  /** It takes no new envelopes any more, as another link of that agent has taken over. */
  retired(link: Link): void
  /** An agent says that another process runs under our key; nothing proves it. */
  accused(): void
}

export interface LinksOptions {
  readonly network: Network
  readonly self: LinkSelf
  /** Our instance that a channel belongs to. */
  readonly own: (channel: Channel) => OwnInstance
  readonly identities: Identities
  readonly clock: Clock
  readonly random: Random
  readonly tunables: Tunables
  readonly telemetry: Telemetry
  readonly events: LinksEvents
  /** Bound pending handshakes per address too. */
  readonly perAddress: boolean
}

/** A move to a direct connection that does not succeed is tried again, ms. */
const MOVE_AGAIN_MS = 1000
const MOVE_ATTEMPTS = 5

export function createLinks(options: LinksOptions): Links {
  return new LinkTable(options)
}

class LinkTable implements Links {
  readonly #options: LinksOptions
  readonly #byAgent = new Map<string, Link[]>()
  /** Dials under way by target. */
  readonly #dials = new Map<string, Promise<Link>>()
  /** Connections (peer id and address) whose incoming handshake is under way: one at a time; bounded by the gate. */
  readonly #inbound = new Set<string>()
  readonly #gate
  #stopped = false
  #toldOfDuplicate = false

  constructor(options: LinksOptions) {
    this.#options = options
    this.#gate = createHandshakeGate(options)
  }

  get(agentId: string): Link | undefined {
    return this.#byAgent.get(agentId)?.find((link) => link.state === 'open')
  }

  has(agentId: string): boolean {
    return this.#byAgent.has(agentId)
  }

  *all(): Iterable<Link> {
    for (const links of this.#byAgent.values()) yield* links
  }

  start(): void {
    this.#options.network.handle(LINK_PROTOCOL, (channel) => {
      const connection = `${channel.remotePeer} ${channel.remoteAddress}`
      if (this.#inbound.has(connection)) {
        this.#turnAway(
          channel,
          new HermesError('HANDSHAKE_REFUSED', { message: 'another handshake on that connection is under way' }),
        )
        return
      }
      this.#inbound.add(connection)
      this.#shake(channel, { addresses: [] })
        .catch(() => undefined)
        .finally(() => this.#inbound.delete(connection))
    })
  }

  stop(reason: HermesError): void {
    this.#stopped = true
    this.#gate.close()
    for (const link of [...this.all()]) link.close(reason)
  }

  async connect(target: LinkTarget, signal?: AbortSignal): Promise<Link> {
    if (this.#stopped) throw new HermesError('STOPPED')
    const existing = target.renew ? undefined : this.#existing(target)
    if (existing) return existing
    const whom = target.agentId ?? target.peerId ?? target.addresses.join(' ')
    const name = target.renew ? `renew ${whom}` : whom
    let dial = this.#dials.get(name)
    if (!dial) {
      dial = this.#dial(target).finally(() => this.#dials.delete(name))
      // Every waiter may have given up by the time it fails.
      dial.catch(() => undefined)
      this.#dials.set(name, dial)
    }
    return withSignal(dial, signal)
  }

  #existing(target: LinkTarget): Link | undefined {
    if (target.agentId !== undefined) return this.get(target.agentId)
    if (target.peerId === undefined) return undefined
    for (const link of this.all()) if (link.remote.peerId === target.peerId && link.state === 'open') return link
    return undefined
  }

  async #dial(target: LinkTarget): Promise<Link> {
    const { network, clock, tunables } = this.#options
    const abort = new AbortController()
    const timer = clock.after(tunables.dialTimeoutMs, () =>
      abort.abort(
        new HermesError('PEER_UNREACHABLE', {
          message: `${target.agentId ?? target.addresses[0] ?? target.peerId} did not answer within ${tunables.dialTimeoutMs} ms`,
          details: { tried: target.addresses.map((address) => ({ address, reason: 'timeout' })) },
        }),
      ),
    )
    let channel: Channel
    try {
      channel = await network.open(
        { addresses: target.addresses, ...(target.peerId === undefined ? {} : { peerId: target.peerId }) },
        LINK_PROTOCOL,
        { signal: abort.signal },
      )
    } catch (error) {
      throw HermesError.from(error, 'PEER_UNREACHABLE')
    } finally {
      clock.clear(timer)
    }
    return this.#shake(channel, target)
  }

  /**
   * One agent says that another process runs under our key. Its word ends that handshake; the proof would be a report of that
   * life, signed with our own key. Told once, as it may be said in each attempt.
   */
  #accused(error: HermesError): void {
    this.#options.events.accused()
    if (this.#toldOfDuplicate) return
    this.#toldOfDuplicate = true
    this.#options.telemetry.emit('peer.notice', {
      text: `${error.message}; nothing proves it so far: this one announces itself while anybody is linked to it`,
    })
  }

  /** Whether another handshake of that peer is under way. */
  #shaking(peerId: string): boolean {
    for (const connection of this.#inbound) if (connection.startsWith(`${peerId} `)) return true
    return false
  }

  linked(peerId: string): boolean {
    for (const link of this.all()) if (link.remote.peerId === peerId) return true
    return false
  }

  direct(peerId: string): void {
    // One of the two does it, and the rule for two links lets the newer one win: the lower peer id has dialled it.
    if (this.#options.network.peerId < peerId) this.#move(peerId, MOVE_ATTEMPTS)
  }

  /** The relayed link may itself still be in its handshake. */
  #move(peerId: string, attempts: number): void {
    const { clock } = this.#options
    if (this.#stopped || attempts === 0) return
    const again = () => void clock.after(MOVE_AGAIN_MS, () => this.#move(peerId, attempts - 1))
    const link = [...this.all()].find(({ remote, state }) => remote.peerId === peerId && state === 'open')
    if (link === undefined) again()
    else if (link.remote.address.includes('/p2p-circuit')) {
      this.#dial({ agentId: link.remote.agentId, peerId, addresses: [] }).catch(again)
    }
  }

  /** Closes connections that serve no link when places run short. */
  relieve(): void {
    this.#options.network.relieve((peerId) => this.linked(peerId))
  }

  /** Refuses a channel before its handshake has begun. */
  #turnAway(channel: Channel, error: HermesError): void {
    this.#options.telemetry.emit('handshake.refused', {
      code: error.code,
      reason: error.message,
      address: channel.remoteAddress,
      peerId: channel.remotePeer,
      by: 'us',
    })
    channel.listen({ data: () => undefined, drained: () => undefined, closed: () => undefined })
    channel.send(encodeRefusal({ error_code: 'HANDSHAKE_REFUSED' }))
    void channel.close().catch(() => undefined)
    this.#options.clock.after(this.#options.tunables.callerGraceMs, () => channel.abort(error))
  }

  /** Runs the handshake on a fresh channel; resolves with the link that is to be used for that agent. */
  #shake(channel: Channel, target: LinkTarget): Promise<Link> {
    const { network, clock, tunables, telemetry } = this.#options
    return new Promise<Link>((resolve, reject) => {
      const queue = new ByteQueue()
      const own = this.#options.own(channel)
      let driven: DrivenLink | undefined
      let handshake: { received(): void } | undefined
      let over = false
      let leave = (): void => undefined
      let timer: Timer | undefined

      const failed = (error: HermesError): void => {
        if (over) return
        over = true
        leave()
        clock.clear(timer)
        telemetry.emit('handshake.refused', {
          code: error.code,
          reason: error.message,
          address: channel.remoteAddress,
          peerId: channel.remotePeer,
          agentId: target.agentId,
          by: error.remote ? 'them' : 'us',
        })
        if (error.code === 'DUPLICATE_AGENT' && error.details.self === true) this.#accused(error)
        // Flushes the refusal, so that the other side learns its code.
        void channel.close().catch(() => undefined)
        const strange = !error.remote && (error.code === 'NOT_ALLOWED' || error.code === 'IDENTITY_MISMATCH')
        clock.after(tunables.callerGraceMs, () => {
          channel.abort(error)
          // Whoever is not admitted does not keep a place among the connections either.
          if (
            strange &&
            channel.direction === 'inbound' &&
            !this.linked(channel.remotePeer) &&
            !this.#shaking(channel.remotePeer)
          ) {
            void network.hangUp(channel.remotePeer).catch(() => undefined)
          }
        })
        reject(error)
      }
      const done = ({ remote, linkId }: HandshakeResult): void => {
        over = true
        leave()
        clock.clear(timer)
        if (this.#stopped) {
          channel.abort(new HermesError('STOPPED'))
          reject(new HermesError('STOPPED'))
          return
        }
        driven = createLink({ id: linkId, channel, remote, own, queue, clock, tunables, events: this.#linkEvents })
        this.#add(driven.link)
        resolve(this.get(remote.agentId) ?? driven.link)
        driven.received()
      }

      channel.listen({
        data: (bytes) => {
          if (over && !driven) return
          queue.push(bytes)
          if (driven) {
            driven.received()
            return
          }
          handshake?.received()
          // Before the handshake is over nobody may make us keep more than one of its messages.
          if (!driven && queue.size > LIMITS.handshake + SIGNATURE_LENGTH + 5) {
            failed(new HermesError('LIMIT_EXCEEDED', { message: 'too many bytes before the handshake was over' }))
          }
        },
        drained: () => driven?.drained(),
        closed: (error) => {
          if (driven) driven.closed(error)
          else
            failed(
              new HermesError('PEER_UNREACHABLE', {
                message: 'the connection ended during the handshake',
                ...(error ? { cause: error } : {}),
              }),
            )
        },
      })
      const ends = {
        enter: () => {
          timer = clock.after(tunables.handshakeTimeoutMs, () =>
            failed(
              new HermesError('HANDSHAKE_REFUSED', {
                message: `the handshake took over ${tunables.handshakeTimeoutMs} ms`,
              }),
            ),
          )
          const { self, identities, random } = this.#options
          handshake = runHandshake(
            {
              channel,
              own,
              self,
              identities,
              clock,
              random,
              tunables,
              chosen: target.chosen ?? false,
              expected: target.agentId,
            },
            queue,
            { done, failed },
          )
          handshake.received()
        },
        refused: failed,
      }
      // Our own dials are bounded by whom we want to reach: strangers who dawdle must not keep us from it.
      if (channel.direction === 'outbound') ends.enter()
      else leave = this.#gate.request(channel.remoteAddress, ends)
      if (over) leave()
    })
  }

  readonly #linkEvents = {
    frame: (link: Link, body: Uint8Array) => this.#options.events.frame(link, body),
    unblocked: (link: Link) => this.#options.events.unblocked(link),
    closed: (link: Link, reason: HermesError, destroyed: boolean) => this.#remove(link, reason, destroyed),
  }

  /** The two-links rule: a higher epoch replaces at once; else newer keys, else age, else the lower dialler decides. */
  #add(link: Link): void {
    const { clock, tunables, telemetry, events } = this.#options
    const agentId = link.remote.agentId
    const others = this.#byAgent.get(agentId) ?? []
    this.#byAgent.set(agentId, [...others, link])
    telemetry.emit('link.up', {
      agentId,
      linkId: link.id,
      address: link.remote.address,
      direction: link.direction,
      offsetMs: link.offsetMs,
    })
    let keep = true
    const retired: Link[] = []
    for (const other of others) {
      if (other.state !== 'open') continue
      if (other.remote.epoch < link.remote.epoch) {
        other.destroy(new HermesError('PEER_RESTARTED', { message: `${agentId} has restarted` }))
      } else if (
        rotation(link) > rotation(other) ||
        (rotation(link) === rotation(other) &&
          (clock.monotonic() - other.openedAt > tunables.twoLinksMs || dialler(link) <= dialler(other)))
      ) {
        other.retire(new HermesError('PEER_UNREACHABLE', { message: `a newer link to ${agentId} took over` }))
        retired.push(other)
      } else {
        keep = false
      }
    }
    if (!keep) {
      link.retire(new HermesError('PEER_UNREACHABLE', { message: `another link to ${agentId} was kept` }))
      retired.push(link)
    }
    events.up(link)
    for (const loser of retired) events.retired(loser)
  }

  #remove(link: Link, reason: HermesError, destroyed: boolean): void {
    const agentId = link.remote.agentId
    const left = (this.#byAgent.get(agentId) ?? []).filter((other) => other !== link)
    if (left.length > 0) this.#byAgent.set(agentId, left)
    else this.#byAgent.delete(agentId)
    const last = left.length === 0
    // A connection that went silent would swallow the next link too: it goes with the last link over it.
    if (destroyed && !left.some(({ remote }) => remote.peerId === link.remote.peerId)) {
      void this.#options.network.hangUp(link.remote.peerId).catch(() => undefined)
    }
    this.#options.telemetry.emit('link.down', {
      agentId,
      linkId: link.id,
      code: reason.code,
      reason: reason.message,
      last,
    })
    this.#options.events.down(link, reason, last)
  }
}

/** How far the keys of both ends have been rotated: the same sum on either side. */
function rotation({ own, remote }: Link): number {
  return own.serial + (remote.identity.instance?.serial ?? 0)
}

/** Peer id of the side that dialled. */
function dialler({ direction, own, remote }: Link): string {
  return direction === 'outbound' ? own.peerId : remote.peerId
}
