import type { Connection, Stream } from '@libp2p/interface'
import type { Channel, DialTarget } from '../network.ts'
import { createChannel } from './channel.ts'
import { reasonOf, unreachable } from './dial-reason.ts'
import type { Dialer, Route } from './dialer.ts'
import { directFirst, isRelayed } from './relay/relayed.ts'
import { deadline } from './signals.ts'

export interface Opener {
  /** As `Network.open`. */
  open(target: DialTarget, protocol: string, signal: AbortSignal): Promise<Channel>
}

export interface OpenerOptions {
  ownPeerId: string
  dialer: Dialer
  /** The connections to a peer, in the order in which they came up. */
  connections(peerId: string): readonly Connection[]
  /** Ends when the network stops. */
  life: AbortSignal
  timeoutMs: number
  maxOutboundStreams(protocol: string): number
}

export function createOpener(options: OpenerOptions): Opener {
  return new ChannelOpener(options)
}

class ChannelOpener implements Opener {
  readonly #options: OpenerOptions

  constructor(options: OpenerOptions) {
    this.#options = options
  }

  async open(target: DialTarget, protocol: string, signal: AbortSignal): Promise<Channel> {
    const { dialer, life, timeoutMs } = this.#options
    signal.throwIfAborted()
    const route = dialer.route(target)
    const limit = deadline({ parents: [signal, life], ms: timeoutMs })
    try {
      const existing = route.peerId === undefined ? undefined : this.#existing(route.peerId)
      if (existing !== undefined) {
        const channel = await this.#reuse(existing, route, protocol, limit.signal)
        if (channel !== undefined) return channel
      }
      const connection = await dialer.dial(route, limit.signal)
      return await this.#openOn(connection, route, protocol, limit.signal)
    } catch (error) {
      if (signal.aborted) throw signal.reason
      throw error
    } finally {
      limit.clear()
    }
  }

  /** Two dials at the same time leave two connections; both ends choose the one that the lower peer id has dialled. */
  #existing(peerId: string): Connection | undefined {
    const preferred = this.#options.ownPeerId < peerId ? 'outbound' : 'inbound'
    const open = directFirst(this.#options.connections(peerId).filter(({ status }) => status === 'open'))
    const alike = open.filter(({ remoteAddr }) => isRelayed(remoteAddr) === (open[0] && isRelayed(open[0].remoteAddr)))
    return alike.find(({ direction }) => direction === preferred) ?? open[0]
  }

  /** Undefined when the connection turns out to be gone, which a new dial may make good. */
  async #reuse(
    connection: Connection,
    route: Route,
    protocol: string,
    signal: AbortSignal,
  ): Promise<Channel | undefined> {
    try {
      return await this.#openOn(connection, route, protocol, signal)
    } catch (error) {
      if (signal.aborted || (connection.status === 'open' && !takesNoStreams(error))) throw error
      return undefined
    }
  }

  async #openOn(connection: Connection, route: Route, protocol: string, signal: AbortSignal): Promise<Channel> {
    let stream: Stream
    try {
      stream = await connection.newStream(protocol, {
        signal,
        maxOutboundStreams: this.#options.maxOutboundStreams(protocol),
        // A relay bounds bytes and time of what goes through it.
        runOnLimitedConnection: true,
      })
    } catch (error) {
      throw this.#failed(connection, route, reasonOf(error), error)
    }
    // The other side may have reset it already, and its `close` event is then past.
    if (stream.status !== 'open') throw this.#failed(connection, route, 'denied')
    return createChannel(stream, connection)
  }

  #failed(connection: Connection, route: Route, reason: string, cause?: unknown) {
    return unreachable(route.name, [...route.tried, { address: connection.remoteAddr.toString(), reason }], cause)
  }
}

/** The other side has said goodbye on it, although its socket is still there: whoever asks next must dial anew. */
function takesNoStreams(error: unknown): boolean {
  const { cause } = error as Error
  return cause instanceof Error && (cause.name === 'ConnectionClosedError' || cause.name === 'MuxerClosedError')
}
