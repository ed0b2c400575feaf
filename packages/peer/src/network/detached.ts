import type { Channel, Network } from './network.ts'

/**
 * The same network, whose connections are made, and whose callbacks run, by `outside`: the asynchronous context of who dials
 * or sends first would else be that of everything that ever comes over that connection.
 */
export function detached(network: Network, outside: <T>(run: () => T) => T): Network {
  const channelOf = (channel: Channel): Channel => ({
    remotePeer: channel.remotePeer,
    remoteAddress: channel.remoteAddress,
    direction: channel.direction,
    get unsentBytes() {
      return channel.unsentBytes
    },
    listen: ({ data, drained, closed }) =>
      channel.listen({
        data: (bytes) => outside(() => data(bytes)),
        drained: () => outside(drained),
        closed: (error) => outside(() => closed(error)),
      }),
    send: (bytes) => channel.send(bytes),
    pause: () => channel.pause(),
    resume: () => channel.resume(),
    close: () => channel.close(),
    abort: (error) => channel.abort(error),
  })
  return {
    get peerId() {
      return network.peerId
    },
    start: () => outside(() => network.start()),
    stop: () => network.stop(),
    addresses: () => network.addresses(),
    handle: (protocol, accept) => network.handle(protocol, (channel) => outside(() => accept(channelOf(channel)))),
    open: async (...to) => channelOf(await outside(() => network.open(...to))),
    hangUp: (peerId) => network.hangUp(peerId),
    relieve: (keep) => network.relieve(keep),
    provide: (...what) => outside(() => network.provide(...what)),
    unprovide: (cid) => network.unprovide(cid),
    findProviders(...what) {
      const found = outside(() => network.findProviders(...what)[Symbol.asyncIterator]())
      return {
        [Symbol.asyncIterator]: () => ({
          next: () => outside(() => found.next()),
          return: async (value) => (await outside(() => found.return?.(value))) ?? { done: true, value },
        }),
      }
    },
    putRecord: (...what) => outside(() => network.putRecord(...what)),
    getRecord: (...what) => outside(() => network.getRecord(...what)),
    subscribe: (topic, receive) =>
      outside(() => network.subscribe(topic, (message) => outside(() => receive(message)))),
    publish: (topic, data) => outside(() => network.publish(topic, data)),
    observe: (events) =>
      network.observe({
        connected: (peerId) => outside(() => events.connected?.(peerId)),
        disconnected: (peerId) => outside(() => events.disconnected?.(peerId)),
        routable: () => outside(() => events.routable?.()),
      }),
  }
}
