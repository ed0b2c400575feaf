import type { Channel, ChannelListener } from 'hermes-peer'

/** What a listener gets, and what a channel does, changed by one mistake each. */
export interface Mistake {
  listener?(listener: ChannelListener, channel: Channel): ChannelListener
  channel?(channel: Channel, listener: () => ChannelListener | undefined): Partial<Channel>
}

/** Mistakes that an implementation of `Channel` could make. */
export const MISTAKES: Record<string, Mistake> = {
  'loses a byte': {
    listener: (to) => ({ ...to, data: (bytes) => to.data(bytes.length > 500 ? bytes.subarray(1) : bytes) }),
  },
  'exchanges bytes': {
    listener: (to) => ({
      ...to,
      data: (bytes) => to.data(bytes.length > 500 ? Uint8Array.from(bytes).reverse() : bytes),
    }),
  },
  'delivers pieces of no bytes': {
    listener: (to) => ({
      ...to,
      data: (bytes) => {
        to.data(new Uint8Array(0))
        to.data(bytes)
      },
    }),
  },
  'forgets what came before listen': {
    channel: (inner) => {
      inner.listen({ data: () => {}, drained: () => {}, closed: () => {} })
      return {}
    },
  },
  'goes on after pause': { channel: () => ({ pause: () => {}, resume: () => {} }) },
  'never holds back': { channel: (inner) => ({ send: (bytes) => inner.send(bytes) || true }) },
  'never says drained': { listener: (to) => ({ ...to, drained: () => {} }) },
  'says that nothing is on this side': { channel: () => ({ unsentBytes: 0 }) },
  'says that all is still on this side': { channel: () => ({ unsentBytes: 1000 }) },
  'says drained without need': {
    channel: (inner, listener) => ({
      send: (bytes) => {
        const goOn = inner.send(bytes)
        listener()?.drained()
        return goOn
      },
    }),
  },
  'ends before it has flushed': {
    channel: (inner) => ({
      close: async () => inner.abort(new Error('closed')),
    }),
  },
  'never ends': { channel: () => ({ close: async () => {} }) },
  'ends both directions with its own close': {
    channel: (inner, listener) => ({
      close: () => {
        inner.pause()
        listener()?.closed()
        return inner.close()
      },
    }),
  },
  'tells of the end twice': {
    listener: (to) => ({
      ...to,
      closed: (error) => {
        to.closed(error)
        to.closed(error)
      },
    }),
  },
  'calls a reset an orderly end': { listener: (to) => ({ ...to, closed: () => to.closed() }) },
  'calls an orderly end an error': { listener: (to) => ({ ...to, closed: () => to.closed(new Error('end')) }) },
  'gives another error than that of abort': {
    listener: (to) => ({ ...to, closed: (error) => (error ? to.closed(new Error('other')) : to.closed()) }),
  },
  'does not reset the other side': { channel: (_, listener) => ({ abort: (error) => listener()?.closed(error) }) },
  'has its directions exchanged': {
    channel: (inner) => ({ direction: inner.direction === 'inbound' ? 'outbound' : 'inbound' }),
  },
}

/** The channel with the mistake built in. */
export function withMistake(inner: Channel, mistake: Mistake): Channel {
  let listener: ChannelListener | undefined
  const wrapped: Channel = {
    remotePeer: inner.remotePeer,
    remoteAddress: inner.remoteAddress,
    direction: inner.direction,
    get unsentBytes() {
      return inner.unsentBytes
    },
    listen: (given) => {
      listener = mistake.listener?.(given, inner) ?? given
      inner.listen(listener)
    },
    send: (bytes) => inner.send(bytes),
    pause: () => inner.pause(),
    resume: () => inner.resume(),
    close: () => inner.close(),
    abort: (error) => inner.abort(error),
  }
  for (const [name, value] of Object.entries(mistake.channel?.(inner, () => listener) ?? {})) {
    Object.defineProperty(wrapped, name, { value })
  }
  return wrapped
}
