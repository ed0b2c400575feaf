import type { Envelope, Frame } from '../../src/peers/peer.ts'

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
    stream(count: number, onFrame: (frame: Frame) => void): Promise<void>
    close(): unknown
  }>
}
export default peer
