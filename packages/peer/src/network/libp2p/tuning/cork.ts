import { Socket } from 'node:net'
import type { ConnectionProtector } from '@libp2p/interface'

/** The parts of libp2p's TCP connection that are used here; they are not promised, so each is looked at before use. */
interface TcpConnection {
  socket?: unknown
  sendData?: unknown
}

type Bytes = Iterable<Uint8Array> & { readonly byteLength: number; subarray(): Uint8Array }

/** Below this one copy is cheaper than handing over the pieces one by one. */
const FLATTEN_BYTES = 16 * 1024

/**
 * Gathers what a turn of the event loop writes into one system call. Noise writes length, ciphertext and tag of each
 * frame by themselves, which would be a `write(2)` each. It sits where libp2p lets a private network wrap the raw
 * connection, and leaves anything that is not a TCP socket as it is.
 */
export function corkWrites(): () => ConnectionProtector {
  return () => ({
    protect: (connection) => {
      cork(connection as TcpConnection)
      return Promise.resolve(connection)
    },
  })
}

function cork(connection: TcpConnection): void {
  const { socket } = connection
  if (!(socket instanceof Socket) || typeof connection.sendData !== 'function') return
  let corked = false
  const uncork = () => {
    corked = false
    socket.uncork()
  }
  connection.sendData = (bytes: Bytes) => {
    if (!corked) {
      corked = true
      socket.cork()
      process.nextTick(uncork)
    }
    let canSendMore = true
    if (bytes.byteLength <= FLATTEN_BYTES) canSendMore = socket.write(bytes.subarray())
    else for (const piece of bytes) canSendMore = socket.write(piece)
    return { sentBytes: bytes.byteLength, canSendMore }
  }
}
