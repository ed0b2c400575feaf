import type { Envelope } from '../../src/peers/peer.ts'

interface Address {
  port: number
}

declare const peer: {
  id: string
  label: string
  startServer(context: {
    handlers: { echo(envelope: Envelope): Promise<Envelope> }
  }): Promise<{ address: Address; close(): unknown }>
  startClient(context: { addresses: readonly Address[] }): Promise<{
    request(envelope: Envelope): Promise<Envelope>
    close(): unknown
  }>
}
export default peer
