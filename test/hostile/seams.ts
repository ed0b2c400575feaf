import { type Channel, createPeerWith, type Network, type Opened, type Peer, type PeerOptions, type Seams } from 'hermes-peer'
import { machineSeams } from '../../packages/peer/src/machine.ts'

/** Makes peers as `createPeer` does, but over seams that a test has put its hands on. */
export function peerOver(change: (seams: Seams) => Seams): (options: PeerOptions) => Peer {
  return (options) => createPeerWith(options, change(machineSeams()))
}

/** Replaces parts of what a peer opens. */
export function opening(change: (opened: Opened) => Partial<Opened>): (seams: Seams) => Seams {
  return (seams) => ({
    ...seams,
    open: async (settings, report) => {
      const opened = await seams.open(settings, report)
      return { ...opened, ...change(opened) }
    },
  })
}

/** A transport that takes one peer id for another: what a handshake must not build on. */
export function mistaking(network: Network, names: ReadonlyMap<string, string>): Network {
  const relabel = (channel: Channel): Channel => ({
    remotePeer: names.get(channel.remotePeer) ?? channel.remotePeer,
    remoteAddress: channel.remoteAddress,
    direction: channel.direction,
    listen: (listener) => channel.listen(listener),
    send: (bytes) => channel.send(bytes),
    pause: () => channel.pause(),
    resume: () => channel.resume(),
    close: () => channel.close(),
    abort: (error) => channel.abort(error),
  })
  return {
    peerId: network.peerId,
    start: () => network.start(),
    stop: () => network.stop(),
    addresses: () => network.addresses(),
    handle: (protocol, accept) => network.handle(protocol, (channel) => accept(relabel(channel))),
    open: async (target, protocol, options) => relabel(await network.open(target, protocol, options)),
    hangUp: (peerId) => network.hangUp(peerId),
    provide: (cid, options) => network.provide(cid, options),
    unprovide: (cid) => network.unprovide(cid),
    findProviders: (cid, options) => network.findProviders(cid, options),
    subscribe: (topic, receive) => network.subscribe(topic, receive),
    publish: (topic, data) => network.publish(topic, data),
    observe: (events) => network.observe(events),
  }
}

/** A wall clock that is off by so many ms; what runs by elapsed time is not. */
export function skewedBy(ms: number): (seams: Seams) => Seams {
  return (seams) => ({ ...seams, clock: { ...seams.clock, now: () => seams.clock.now() + ms } })
}
