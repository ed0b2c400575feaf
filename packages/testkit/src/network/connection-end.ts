import { HermesError } from '@hermes-peer/protocol'
import { type Carrier, createChannel, type MemoryChannel } from './channel.ts'
import type { Connection } from './connection.ts'
import type { Fabric } from './fabric.ts'
import type { Host } from './host.ts'
import { type Frame, type Lane, sign } from './lane.ts'

/** One end of a connection. */
export interface ConnectionEnd extends Carrier {
  readonly connection: Connection
  readonly host: Host
  readonly remote: Host
  readonly direction: 'inbound' | 'outbound'
  readonly alive: boolean
  /** Payload bytes on the way to the other end. */
  readonly queuedBytes: number
  /** Undefined when there are too many. */
  channel(onReset?: (error: Error) => void): MemoryChannel | undefined
  /** Ends here at once; the other end is told as soon as a message takes. */
  close(error: Error): void
  /** Ends here without telling the host; the other end is told by its system. */
  vanish(): void
}

/** An end as its connection sees it. */
export interface OwnedEnd extends ConnectionEnd {
  /** What carries to the other end. */
  readonly out: Lane
  join(other: OwnedEnd): void
  /** Ends here at once; the other end is not told. */
  fail(error: Error): void
}

export interface EndOptions {
  connection: Connection
  fabric: Fabric
  host: Host
  remote: Host
  remoteAddress: string
  direction: 'inbound' | 'outbound'
  out: Lane
  onDeath: () => void
}

export function createEnd(options: EndOptions): OwnedEnd {
  return new MemoryEnd(options)
}

/** What the channels of a connection end with. */
export function connectionLost(peerId: string, how: string): HermesError {
  return new HermesError('PEER_UNREACHABLE', { message: `${peerId}: the connection ${how}` })
}

/** Bound of the channels of one end, as in yamux. */
const MAX_CHANNELS = 1_000

class MemoryEnd implements OwnedEnd {
  readonly connection: Connection
  readonly host: Host
  readonly remote: Host
  readonly remotePeer: string
  readonly remoteAddress: string
  readonly direction: 'inbound' | 'outbound'
  readonly out: Lane
  alive = true
  readonly #fabric: Fabric
  readonly #onDeath: () => void
  readonly #channels = new Set<MemoryChannel>()
  #other: OwnedEnd | undefined

  constructor(options: EndOptions) {
    this.connection = options.connection
    this.host = options.host
    this.remote = options.remote
    this.remotePeer = options.remote.peerId
    this.remoteAddress = options.remoteAddress
    this.direction = options.direction
    this.out = options.out
    this.#fabric = options.fabric
    this.#onDeath = options.onDeath
  }

  get queuedBytes(): number {
    return this.out.queuedBytes
  }

  join(other: OwnedEnd): void {
    this.#other = other
  }

  send(frame: Frame): void {
    if (this.alive) this.out.push(frame)
  }

  channel(onReset?: (error: Error) => void): MemoryChannel | undefined {
    if (this.#channels.size >= MAX_CHANNELS) return undefined
    const { random, settings } = this.#fabric
    const channel = createChannel({
      carrier: this,
      direction: this.direction,
      random,
      windowBytes: settings.windowBytes,
      sendLimitBytes: settings.sendLimitBytes,
      ...(onReset ? { onReset } : {}),
    })
    this.#channels.add(channel)
    return channel
  }

  forget(channel: MemoryChannel): void {
    this.#channels.delete(channel)
  }

  close(error: Error): void {
    if (!this.alive) return
    this.#sayGoodbye()
    this.fail(error)
  }

  vanish(): void {
    if (!this.alive) return
    this.#sayGoodbye()
    this.#die()
    for (const channel of this.#channels) channel.kill()
    this.#onDeath()
  }

  fail(error: Error): void {
    if (!this.alive) return
    this.#die()
    for (const channel of [...this.#channels]) channel.reset(error)
    this.host.left(this)
    this.#onDeath()
  }

  #sayGoodbye(): void {
    const lost = connectionLost(this.host.peerId, 'was reset')
    this.out.push(sign(() => this.#other?.fail(lost)))
  }

  #die(): void {
    this.alive = false
    // What is on the way here is lost; what has left here still arrives.
    this.#other?.out.close()
    this.#fabric.trace?.add(`${this.#fabric.timeline.now()} end ${this.connection.id} ${this.host.peerId}`)
  }
}
