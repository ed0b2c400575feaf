import { HermesError, MAX_SINGLE_FRAME } from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { OwnInstance } from '../identity/own-instance.ts'
import type { Channel } from '../network/network.ts'
import type { ByteQueue } from './byte-queue.ts'
import type { Remote } from './remote.ts'

/** What becomes of a frame; at most one of the two is called, once. */
export interface Receipt {
  /** The other side has told that it received it. */
  arrived?: (() => void) | undefined
  /** The link has ended, and nobody knows whether it arrived. */
  lost?: ((reason: HermesError) => void) | undefined
  /** Bytes that are kept for the sake of `lost`. Default 0. */
  keeps?: number | undefined
}

/** The authenticated, long-lived connection to one other peer. */
export interface Link {
  readonly id: string
  readonly remote: Remote
  /** This side of it: which of our keys signs what goes over it. */
  readonly own: OwnInstance
  readonly direction: 'inbound' | 'outbound'
  /** Monotonic ms. */
  readonly openedAt: number
  readonly state: 'open' | 'retired' | 'closed'
  /** More is buffered than should be: hold back until `unblocked`. */
  readonly blocked: boolean
  /** Monotonic ms of the last frame; any authenticated traffic counts as life. */
  readonly heardAt: number
  /** Unanswered probes in a row. */
  probes: number
  probedAt: number
  /** A heartbeat is due for its receipts. */
  readonly receiptDue: boolean
  readonly framesReceived: number
  /** Since when the other side has taken nothing of what waits for it, monotonic ms; undefined while nothing waits. */
  readonly stalledAt: number | undefined
  /** Signed envelopes of this link that did not verify. */
  violations: number
  /** Measured clock offset, refreshed by heartbeats. */
  offsetMs: number
  /** Writes a whole frame. */
  send(frame: Uint8Array, receipt?: Receipt): void
  /** The other side has received so many of our frames. */
  receipt(count: number): void
  /** Starts silence and stall over, after a stall of our own. */
  forgiveSilence(): void
  sentReceipt(): void
  /** Takes no new envelopes; what either side has under way on it is still written and read, until it is closed after 5 s. */
  retire(reason: HermesError): void
  /** Ends the link after what has come has been handled, and what is buffered has been handed to the transport. */
  close(reason: HermesError): void
  /** Resets it at once. */
  destroy(reason: HermesError): void
}

export interface LinkEvents {
  frame(link: Link, body: Uint8Array): void
  unblocked(link: Link): void
  /** `destroyed`: this side gave it up, so the connection below is not to be trusted either. */
  closed(link: Link, reason: HermesError, destroyed: boolean): void
}

/** Frames handled in one go: more, and both ends work in turns while one core idles. */
const SLICE = 8
/** Receipts awaited per link; older ones are given up, their records stay unsettled until they expire. */
const MOST_RECEIPTS = 20_000
/** Bytes kept for frames without a receipt, per link: an honest peer tells after each 2 MiB. Older ones are given up. */
const MOST_KEPT = 32 * 1024 * 1024

export interface LinkOptions {
  readonly id: string
  readonly channel: Channel
  readonly remote: Remote
  readonly own: OwnInstance
  readonly queue: ByteQueue
  readonly clock: Clock
  readonly tunables: Tunables
  readonly events: LinkEvents
}

/** A link, and the channel's callbacks that drive it. */
export interface DrivenLink {
  readonly link: Link
  received(): void
  drained(): void
  closed(error?: Error): void
}

export function createLink(options: LinkOptions): DrivenLink {
  const link = new ChannelLink(options)
  return {
    link,
    received: () => link.received(),
    drained: () => link.drained(),
    closed: (error) =>
      link.ended(
        new HermesError('PEER_UNREACHABLE', {
          message: error
            ? `the link to ${options.remote.agentId} was lost`
            : `${options.remote.agentId} has closed the link`,
          ...(error ? { cause: error } : { details: { orderly: true } }),
        }),
      ),
  }
}

class ChannelLink implements Link {
  readonly id: string
  readonly remote: Remote
  readonly own: OwnInstance
  readonly direction: 'inbound' | 'outbound'
  readonly openedAt: number
  state: 'open' | 'retired' | 'closed' = 'open'
  heardAt: number
  probes = 0
  probedAt = 0
  framesReceived = 0
  violations = 0
  offsetMs: number

  readonly #channel: Channel
  readonly #queue: ByteQueue
  readonly #clock: Clock
  readonly #tunables: Tunables
  readonly #events: LinkEvents
  #reading = false
  #paused = false
  #batch: Uint8Array[] = []
  #waiting: Uint8Array[] = []
  #waitingBytes = 0
  #flushing = false
  #full = false
  /** While full: bytes that the transport had left when it was last seen to take some, and when that was. */
  #left = 0
  #movedAt = 0
  #sent = 0
  #received = 0
  #receipts: { count: number; receipt: Receipt }[] = []
  #kept = 0
  #framesSinceReceipt = 0
  #bytesSinceReceipt = 0
  /** The channel has ended: nothing more can be sent, and what has come is still read. */
  #over: HermesError | undefined

  constructor(options: LinkOptions) {
    this.id = options.id
    this.remote = options.remote
    this.own = options.own
    this.direction = options.channel.direction
    this.#channel = options.channel
    this.#queue = options.queue
    this.#clock = options.clock
    this.#tunables = options.tunables
    this.#events = options.events
    this.openedAt = options.clock.monotonic()
    this.heardAt = this.openedAt
    this.offsetMs = options.remote.offsetMs
  }

  get blocked(): boolean {
    return this.#full
  }

  get stalledAt(): number | undefined {
    if (!this.#full) return undefined
    const left = this.#channel.unsentBytes
    if (left < this.#left) this.#moved()
    this.#left = left
    return this.#movedAt
  }

  get receiptDue(): boolean {
    return (
      this.#framesSinceReceipt >= this.#tunables.receiptFrames || this.#bytesSinceReceipt >= this.#tunables.receiptBytes
    )
  }

  send(frame: Uint8Array, receipt?: Receipt): void {
    if (this.state === 'closed') return
    this.#sent++
    if (receipt) {
      this.#receipts.push({ count: this.#sent, receipt })
      this.#kept += receipt.keeps ?? 0
      while (this.#receipts.length > MOST_RECEIPTS || this.#kept > MOST_KEPT) this.#settled()
    }
    if (this.#over) return
    if (this.#full) {
      this.#waiting.push(frame)
      this.#waitingBytes += frame.length
      if (this.#waitingBytes > this.#tunables.linkBufferBytes) {
        this.destroy(
          new HermesError('PEER_UNREACHABLE', { message: `${this.remote.agentId} does not read what is sent to it` }),
        )
      }
      return
    }
    this.#batch.push(frame)
    if (this.#batch.length >= SLICE) this.#flush()
    else if (!this.#flushing) {
      this.#flushing = true
      process.nextTick(() => {
        this.#flushing = false
        this.#flush()
      })
    }
  }

  receipt(count: number): void {
    if (count > this.#received) {
      this.#received = count
      this.#moved()
    }
    for (let next = this.#receipts[0]; next && next.count <= count; next = this.#receipts[0]) {
      this.#settled()
      next.receipt.arrived?.()
    }
  }

  forgiveSilence(): void {
    this.heardAt = this.#clock.monotonic()
    this.probes = 0
    this.#moved()
  }

  sentReceipt(): void {
    this.#framesSinceReceipt = 0
    this.#bytesSinceReceipt = 0
  }

  retire(reason: HermesError): void {
    if (this.state !== 'open') return
    this.state = 'retired'
    // Its dialler may have requests under way on it: they are read until it is closed, from either side.
    this.#clock.after(this.#tunables.retiredLinkMs, () => this.close(reason))
  }

  close(reason: HermesError): void {
    if (this.state === 'closed') return
    try {
      while (this.#next());
    } catch (error) {
      this.destroy(HermesError.from(error, 'MALFORMED'))
    }
    if ((this.state as string) === 'closed') return
    this.#flush()
    this.#handOver()
    this.#end(this.#over ?? reason)
    void this.#channel.close().catch(() => undefined)
  }

  destroy(reason: HermesError): void {
    if (this.state === 'closed') return
    this.#end(reason, true)
    this.#channel.abort(reason)
  }

  received(): void {
    this.read()
    // What comes faster than it is handled waits at its sender; not so the rest of a frame that is awaited.
    if (this.state === 'closed' || !this.#reading || this.#paused || this.#queue.size <= this.#tunables.linkReadBytes)
      return
    this.#paused = true
    this.#channel.pause()
  }

  /** Cuts frames out of what has come, a slice at a time. */
  read(): void {
    if (this.#reading || this.state === 'closed') return
    this.#reading = true
    try {
      for (let i = 0; i < SLICE; i++) {
        if (this.#next()) continue
        this.#reading = false
        if (this.#over) this.#end(this.#over)
        else this.#resume()
        return
      }
    } catch (error) {
      this.#reading = false
      this.destroy(HermesError.from(error, 'MALFORMED'))
      return
    }
    if (this.#queue.size * 2 < this.#tunables.linkReadBytes) this.#resume()
    setImmediate(() => {
      this.#reading = false
      this.read()
    })
  }

  drained(): void {
    this.#full = false
    const waiting = this.#waiting
    this.#waiting = []
    this.#waitingBytes = 0
    for (const [index, frame] of waiting.entries()) {
      if (this.#full) {
        this.#waiting = waiting.slice(index)
        for (const left of this.#waiting) this.#waitingBytes += left.length
        return
      }
      this.#batch.push(frame)
      if (this.#batch.length >= SLICE) this.#flush()
    }
    this.#flush()
    if (!this.#full) this.#events.unblocked(this)
  }

  ended(reason: HermesError): void {
    if (this.state === 'closed') return
    this.#over = reason
    if (this.state === 'open') this.state = 'retired'
    this.#batch = []
    this.#waiting = []
    this.read()
  }

  /** Handles the next frame that has come whole; false when there is none, or no use for it. */
  #next(): boolean {
    if (this.state === 'closed') return false
    const body = this.#queue.part(MAX_SINGLE_FRAME)
    if (!body) return false
    this.framesReceived++
    this.#framesSinceReceipt++
    this.#bytesSinceReceipt += body.length
    this.heardAt = this.#clock.monotonic()
    this.probes = 0
    this.#events.frame(this, body)
    return true
  }

  #resume(): void {
    if (!this.#paused || this.state === 'closed') return
    this.#paused = false
    this.#channel.resume()
  }

  /** The oldest receipt is not awaited any more. */
  #settled(): void {
    this.#kept -= this.#receipts.shift()?.receipt.keeps ?? 0
  }

  #moved(): void {
    this.#movedAt = this.#clock.monotonic()
  }

  #flush(): void {
    const batch = this.#batch
    if (batch.length === 0 || this.state === 'closed' || this.#over) return
    this.#batch = []
    const bytes = batch.length === 1 ? (batch[0] as Uint8Array) : Buffer.concat(batch)
    if (this.#channel.send(bytes) || this.#full) return
    this.#full = true
    this.#left = this.#channel.unsentBytes
    this.#moved()
  }

  /** What waits goes to the transport, which flushes it before the end, as far as that takes it. */
  #handOver(): void {
    for (const frame of this.#waiting) {
      if (this.#over || this.#channel.unsentBytes + frame.length > this.#tunables.lastWordsBytes) return
      this.#channel.send(frame)
    }
  }

  #end(reason: HermesError, destroyed = false): void {
    this.state = 'closed'
    this.#batch = []
    this.#waiting = []
    const open = this.#receipts
    this.#receipts = []
    this.#kept = 0
    this.#events.closed(this, reason, destroyed)
    for (const { receipt } of open) receipt.lost?.(reason)
  }
}
