import { HermesError, MAX_SINGLE_FRAME } from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Channel } from '../network/network.ts'
import type { ByteQueue } from './byte-queue.ts'
import type { Remote } from './remote.ts'

/** The authenticated, long-lived connection to one other peer. */
export interface Link {
  readonly id: string
  readonly remote: Remote
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
  /** Since when the other side takes nothing, monotonic ms; undefined while it does. */
  readonly stalledAt: number | undefined
  /** Signed envelopes of this link that did not verify. */
  violations: number
  /** Measured clock offset, refreshed by heartbeats. */
  offsetMs: number
  /** Writes a whole frame; `arrived` is called once the other side has told that it received it. */
  send(frame: Uint8Array, arrived?: () => void): void
  /** The other side has received so many of our frames. */
  receipt(count: number): void
  /** Starts silence over, after a stall of our own. */
  forgiveSilence(): void
  sentReceipt(): void
  /** Takes no new envelopes; closes once everything is written, at the latest after 5 s. */
  retire(reason: HermesError): void
  /** Ends the link after what is buffered has been written. */
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

export interface LinkOptions {
  readonly id: string
  readonly channel: Channel
  readonly remote: Remote
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
    received: () => link.read(),
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
  readonly direction: 'inbound' | 'outbound'
  readonly openedAt: number
  state: 'open' | 'retired' | 'closed' = 'open'
  heardAt: number
  probes = 0
  probedAt = 0
  framesReceived = 0
  stalledAt: number | undefined
  violations = 0
  offsetMs: number

  readonly #channel: Channel
  readonly #queue: ByteQueue
  readonly #clock: Clock
  readonly #tunables: Tunables
  readonly #events: LinkEvents
  #reading = false
  #batch: Uint8Array[] = []
  #waiting: Uint8Array[] = []
  #waitingBytes = 0
  #flushing = false
  #full = false
  #sent = 0
  #receipts: { count: number; arrived: () => void }[] = []
  #framesSinceReceipt = 0
  #bytesSinceReceipt = 0
  #reason: HermesError | undefined

  constructor(options: LinkOptions) {
    this.id = options.id
    this.remote = options.remote
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

  get receiptDue(): boolean {
    return (
      this.#framesSinceReceipt >= this.#tunables.receiptFrames || this.#bytesSinceReceipt >= this.#tunables.receiptBytes
    )
  }

  send(frame: Uint8Array, arrived?: () => void): void {
    if (this.state === 'closed') return
    this.#sent++
    if (arrived) {
      if (this.#receipts.length >= MOST_RECEIPTS) this.#receipts.shift()
      this.#receipts.push({ count: this.#sent, arrived })
    }
    if (this.#full) {
      this.#waiting.push(frame)
      this.#waitingBytes += frame.length
      if (this.#waitingBytes > this.#tunables.linkBufferBytes * 4) {
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
    let done = 0
    while (done < this.#receipts.length && (this.#receipts[done] as { count: number }).count <= count) {
      ;(this.#receipts[done] as { arrived: () => void }).arrived()
      done++
    }
    if (done > 0) this.#receipts.splice(0, done)
  }

  forgiveSilence(): void {
    this.heardAt = this.#clock.monotonic()
    this.probes = 0
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
    this.#flush()
    this.#end(reason)
    void this.#channel.close().catch(() => undefined)
  }

  destroy(reason: HermesError): void {
    if (this.state === 'closed') return
    this.#end(reason, true)
    this.#channel.abort(reason)
  }

  /** Cuts frames out of what has come, a slice at a time. */
  read(): void {
    if (this.#reading || this.state === 'closed') return
    this.#reading = true
    try {
      for (let i = 0; i < SLICE; i++) {
        const body = this.#queue.part(MAX_SINGLE_FRAME)
        if (!body || (this.state as string) === 'closed') {
          this.#reading = false
          return
        }
        this.framesReceived++
        this.#framesSinceReceipt++
        this.#bytesSinceReceipt += body.length
        this.heardAt = this.#clock.monotonic()
        this.probes = 0
        this.#events.frame(this, body)
      }
    } catch (error) {
      this.#reading = false
      this.destroy(HermesError.from(error, 'MALFORMED'))
      return
    }
    setImmediate(() => {
      this.#reading = false
      this.read()
    })
  }

  drained(): void {
    this.#full = false
    this.stalledAt = undefined
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
    if (this.state !== 'closed') this.#end(reason)
  }

  #flush(): void {
    const batch = this.#batch
    if (batch.length === 0 || (this.state as string) === 'closed') return
    this.#batch = []
    const bytes = batch.length === 1 ? (batch[0] as Uint8Array) : Buffer.concat(batch)
    if (!this.#channel.send(bytes)) {
      this.#full = true
      this.stalledAt ??= this.#clock.monotonic()
    }
  }

  #end(reason: HermesError, destroyed = false): void {
    this.state = 'closed'
    this.#reason ??= reason
    this.#batch = []
    this.#waiting = []
    this.#receipts = []
    this.#events.closed(this, this.#reason, destroyed)
  }
}
