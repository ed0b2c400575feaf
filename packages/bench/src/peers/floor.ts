// biome-ignore lint/correctness/useImportExtensions: it is JavaScript, with its types beside it
import tcpSigned from '../../floor/peers/tcp-signed.mjs'
import { echo, type Row } from './peer.ts'

/** Raw TCP with an Ed25519 signature on each message: no routing, no encryption, no deduplication. */
export const row: Row = {
  async startServer(context) {
    const server = await tcpSigned.startServer({ handlers: { echo: async (envelope) => echo(envelope, context) } })
    return {
      address: String(server.address.port),
      close: async () => {
        server.close()
      },
    }
  },

  async startClient(context) {
    const client = await tcpSigned.startClient({ addresses: context.addresses.map((port) => ({ port: Number(port) })) })
    return {
      request: (envelope) => client.request(envelope),
      stream: (count, onFrame) => client.stream(count, onFrame),
      knows: async () => {},
      close: async () => {
        client.close()
      },
    }
  },
}
