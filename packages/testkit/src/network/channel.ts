import { HermesError } from '@hermes-peer/protocol'
import type { Channel, ChannelListener } from 'hermes-peer'
import type { SeededRandom } from '../random/seeded-random.ts'
import { createIncoming, type Incoming } from './incoming.ts'
import { type Frame, sign } from './lane.ts'
import { createOutgoing, type Outgoing } from './outgoing.ts'

/** A channel as its connection and the other end see it. */
export interface MemoryChannel extends Channel {
  /** Whether `listen` has been called. */
  readonly listening: boolean
  /** Whether it has not been reset. */
  readonly live: boolean
  /** Ties it to its other end. */
  join(other: MemoryChannel): void
  /** Bytes have come; returns what hands them to the listener. */
  receive(bytes: Uint8Array): () => void
  /** The other side has ended its half; returns what tells the listener. */
  receiveEnd(): () => void
  /** The other side has read this much. */
  credit(bytes: number): void
  /** Ended by the other side or by the loss of the connection. */
  reset(error: Error): void
  /** The process it belongs to is gone: nothing is called any more. */
  kill(): void
}

/** What a channel needs of its end of the connection. */
export interface Carrier {
  readonly remotePeer: string
  readonly remoteAddress: string
  send(frame: Frame): void
  /** The channel has ended for good. */
  forget(channel: MemoryChannel): void
}

export interface ChannelOptions {
  carrier: Carrier
  direction: 'inbound' | 'outbound'
  random: SeededRandom
  windowBytes: number
  sendLimitBytes: number
  /** Called once when it is reset, from either side. */
  onReset?: (error: Error) => void
}

export function createChannel(options: ChannelOptions): MemoryChannel {
  return new TwoHalves(options)
}

class TwoHalves implements MemoryChannel {
  readonly remotePeer: string
  readonly remoteAddress: string
  readonly direction: 'inbound' | 'outbound'
  readonly #options: ChannelOptions
  readonly #outgoing: Outgoing
  readonly #incoming: Incoming
  readonly #pump: () => void
  #other: MemoryChannel | undefined
  #listener: ChannelListener | undefined
  /** `closed` is owed to a listener that is yet to come, with this. */
  #owed: { error: Error } | undefined
  #toldClosed = false
  #dead = false

  constructor(options: ChannelOptions) {
    const { carrier, random, windowBytes } = options
    this.#options = options
    this.remotePeer = carrier.remotePeer
    this.remoteAddress = carrier.remoteAddress
    this.direction = options.direction
    this.#outgoing = createOutgoing({
      windowBytes,
      random,
      emit: (bytes) =>
        carrier.send({
          size: bytes.length,
          arrive: (received) => this.#other?.receive(bytes.subarray(0, received)),
        }),
      emitEnd: () => carrier.send({ size: 0, arrive: () => this.#other?.receiveEnd() }),
      drained: () => this.#listener?.drained(),
    })
    this.#incoming = createIncoming({
      windowBytes,
      random,
      wanted: () => this.#listener !== undefined && !this.#dead,
      deliver: (bytes) => this.#listener?.data(bytes),
      consumed: (bytes) => carrier.send(sign(() => this.#other?.credit(bytes))),
      ended: () => this.#tellClosed(undefined),
    })
    this.#pump = () => this.#incoming.pump()
  }

  get listening(): boolean {
    return this.#listener !== undefined
  }

  get live(): boolean {
    return !this.#dead
  }

  get unsentBytes(): number {
    return this.#outgoing.waitingBytes
  }

  listen(listener: ChannelListener): void {
    this.#listener = listener
    if (this.#owed) this.#tellClosed(this.#owed.error)
    else this.#incoming.pump()
  }

  send(bytes: Uint8Array): boolean {
    if (this.#dead || this.#outgoing.ending) return false
    const goOn = this.#outgoing.send(bytes)
    const waiting = this.#outgoing.waitingBytes
    if (waiting <= this.#options.sendLimitBytes) return goOn
    this.abort(
      new HermesError('QUEUE_FULL', {
        message: `channel to ${this.remotePeer}: ${waiting} bytes wait although send() has returned false`,
        hint: 'Hold back until drained() is called.',
      }),
    )
    return false
  }

  pause(): void {
    this.#incoming.pause()
  }

  resume(): void {
    this.#incoming.resume()
  }

  close(): Promise<void> {
    const closed = this.#outgoing.close()
    this.#forgetWhenDone()
    return closed
  }

  abort(error: Error): void {
    if (this.#dead || this.#done) return
    const { carrier } = this.#options
    const there = new HermesError('PEER_UNREACHABLE', {
      message: `${carrier.remotePeer}: a stream was reset by the other side`,
    })
    carrier.send(sign(() => this.#other?.reset(there)))
    this.#fail(error)
  }

  join(other: MemoryChannel): void {
    this.#other = other
  }

  receive(bytes: Uint8Array): () => void {
    if (!this.#dead) this.#incoming.push(bytes)
    return this.#pump
  }

  receiveEnd(): () => void {
    if (!this.#dead) this.#incoming.end()
    return this.#pump
  }

  credit(bytes: number): void {
    if (this.#dead) return
    this.#outgoing.credit(bytes)
    this.#forgetWhenDone()
  }

  reset(error: Error): void {
    if (this.#dead) return
    // What came in the same instant was there before the reset. The listener may abort meanwhile.
    this.#incoming.pump()
    if (!this.#dead) this.#fail(error)
  }

  kill(): void {
    this.#listener = undefined
    this.#toldClosed = true
    this.#dead = true
    this.#incoming.drop()
    this.#options.carrier.forget(this)
  }

  get #done(): boolean {
    return this.#toldClosed && this.#outgoing.finished
  }

  #fail(error: Error): void {
    this.#dead = true
    this.#outgoing.drop()
    this.#incoming.drop()
    this.#options.carrier.forget(this)
    this.#options.onReset?.(error)
    this.#tellClosed(error)
  }

  #tellClosed(error: Error | undefined): void {
    if (this.#toldClosed) return
    if (!this.#listener) {
      if (error) this.#owed = { error }
      return
    }
    this.#toldClosed = true
    this.#owed = undefined
    this.#forgetWhenDone()
    if (error) this.#listener.closed(error)
    else this.#listener.closed()
  }

  #forgetWhenDone(): void {
    if (this.#done) this.#options.carrier.forget(this)
  }
}
