import type { Connection } from '@libp2p/interface'
import type { RelayComponents } from './components.ts'

type Registrar = RelayComponents['registrar']

/** How often it is looked whether anything still runs over a relayed connection that has been replaced, ms. */
const LOOK_MS = 500
/** Protocols of ours; what they carry moves by itself or ends by itself. */
const OURS = '/hermes/'

/**
 * libp2p closes a relayed connection as soon as there is a direct one, with whatever runs over it. Behind this registrar it is
 * closed only once links have moved and streams have ended.
 */
export function createHandOver(registrar: Registrar): { registrar: Registrar; stop(): void } {
  const waiting = new Set<NodeJS.Timeout>()
  const closeLater = (connection: Connection): void => {
    const timer = setInterval(() => {
      if (connection.status === 'open' && connection.streams.some(({ protocol }) => protocol.startsWith(OURS))) return
      clearInterval(timer)
      waiting.delete(timer)
      connection.close().catch(() => undefined)
    }, LOOK_MS)
    timer.unref()
    waiting.add(timer)
  }
  const kept = (connection: Connection): Connection =>
    new Proxy(connection, {
      get(target, name) {
        if (name === 'close') return async () => closeLater(target)
        const value: unknown = Reflect.get(target, name, target)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
  const handle: Registrar['handle'] = (protocol, handler, options) =>
    registrar.handle(protocol, (stream, connection) => handler(stream, kept(connection)), options)
  const register: Registrar['register'] = (protocol, topology) =>
    registrar.register(protocol, {
      ...topology,
      onConnect: (peerId, connection) => topology.onConnect?.(peerId, kept(connection)),
    })
  return {
    registrar: Object.create(registrar, {
      handle: { value: handle },
      register: { value: register },
      unhandle: { value: registrar.unhandle.bind(registrar) },
      unregister: { value: registrar.unregister.bind(registrar) },
    }) as Registrar,
    stop() {
      for (const timer of waiting) clearInterval(timer)
      waiting.clear()
    },
  }
}
