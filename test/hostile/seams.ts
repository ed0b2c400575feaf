import {
  type Channel,
  createPeerWith,
  type Network,
  type Opened,
  type Peer,
  type PeerOptions,
  type Seams,
} from 'hermes-peer'
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
    get unsentBytes() {
      return channel.unsentBytes
    },
    listen: (listener) => channel.listen(listener),
    send: (bytes) => channel.send(bytes),
    pause: () => channel.pause(),
    resume: () => channel.resume(),
    close: () => channel.close(),
    abort: (error) => channel.abort(error),
  })
  const changed: Partial<Network> = {
    handle: (protocol, accept) => network.handle(protocol, (channel) => accept(relabel(channel))),
    open: async (target, protocol, options) => relabel(await network.open(target, protocol, options)),
  }
  return new Proxy(network, {
    get(target, key) {
      const value: unknown = Reflect.get(key in changed ? changed : target, key)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

/** A wall clock that is off by so many ms; what runs by elapsed time is not. */
export function skewedBy(ms: number): (seams: Seams) => Seams {
  return (seams) => ({ ...seams, clock: { ...seams.clock, now: () => seams.clock.now() + ms } })
}
