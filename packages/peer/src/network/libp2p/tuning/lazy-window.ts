import type { StreamMuxerFactory } from '@libp2p/interface'

/** The parts of yamux that are used here; they are not promised, so each is looked at before use. */
interface YamuxStream {
  state?: unknown
  recvWindow?: unknown
  recvWindowCapacity?: unknown
  sendWindowUpdate?: unknown
}

interface YamuxMuxer {
  _newStream?: unknown
}

/** Yamux's states in which the next frame still has to carry SYN or ACK: it must go out. */
const OPENING_STATES: ReadonlySet<unknown> = new Set([0, 2])

/**
 * Makes yamux tell the other side about new room only when half of the window is used up. By itself it answers each
 * data frame with an update, one more frame to seal and write per message. The sender cannot run dry: it still has
 * half a window when the update leaves.
 */
export function lazyWindow<F extends StreamMuxerFactory>(muxer: () => F): () => F {
  return () => {
    const factory = muxer()
    const create = factory.createStreamMuxer.bind(factory)
    factory.createStreamMuxer = (connection) => {
      const created = create(connection)
      patchMuxer(created as YamuxMuxer)
      return created
    }
    return factory
  }
}

function patchMuxer(muxer: YamuxMuxer): void {
  const newStream = muxer._newStream
  if (typeof newStream !== 'function') return
  muxer._newStream = (...parameters: unknown[]) => {
    const stream: YamuxStream = newStream.apply(muxer, parameters)
    patchStream(stream)
    return stream
  }
}

function patchStream(stream: YamuxStream): void {
  const update = stream.sendWindowUpdate
  if (typeof update !== 'function' || typeof stream.state !== 'number') return
  stream.sendWindowUpdate = () => {
    const { state, recvWindow: window, recvWindowCapacity: left } = stream
    const plenty = typeof window === 'number' && typeof left === 'number' && left * 2 > window
    if (plenty && !OPENING_STATES.has(state)) return
    update.call(stream)
  }
}
