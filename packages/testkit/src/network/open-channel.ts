import { HermesError } from '@hermes-peer/protocol'
import type { Channel } from 'hermes-peer'
import type { MemoryChannel } from './channel.ts'
import type { ConnectionEnd } from './connection-end.ts'
import { sign } from './lane.ts'
import { unreachable } from './unreachable.ts'

/**
 * Opens a channel over a connection: one round trip, in which the other side agrees to the protocol.
 * Rejects with `PEER_UNREACHABLE`, or with the signal's reason.
 */
export function openChannel(end: ConnectionEnd, protocol: string, signal: AbortSignal): Promise<Channel> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const fail = (reason: string) => {
      signal.removeEventListener('abort', giveUp)
      reject(unreachable(end.remotePeer, [{ address: end.remoteAddress, reason }]))
    }
    if (!end.alive) return fail('connection lost')
    const channel = end.channel(() => fail('connection lost'))
    if (!channel) return fail('too many streams')
    const giveUp = () => {
      reject(signal.reason)
      channel.abort(signal.reason)
    }
    signal.addEventListener('abort', giveUp, { once: true })
    const answer: Answer = {
      accept: () => {
        signal.removeEventListener('abort', giveUp)
        resolve(channel)
      },
      refuse: (reason) => {
        channel.kill()
        fail(reason)
      },
    }
    end.send(sign(() => serve(end, protocol, channel, answer)))
  })
}

interface Answer {
  accept(): void
  refuse(reason: string): void
}

/** The request has arrived at the other end of `from`. */
function serve(from: ConnectionEnd, protocol: string, caller: MemoryChannel, answer: Answer): void {
  const end = from.connection.ends.find((other) => other !== from) as ConnectionEnd
  const accept = end.host.handler(protocol)
  const channel = accept ? end.channel() : undefined
  if (!accept || !channel) {
    end.send(sign(() => answer.refuse(accept ? 'too many streams' : 'protocol not supported')))
    return
  }
  channel.join(caller)
  caller.join(channel)
  end.send(sign(() => answer.accept()))
  try {
    accept(channel)
    if (channel.live && !channel.listening) throw deaf(protocol)
  } catch (error) {
    channel.abort(error as Error)
    // A failing handler is a mistake in the code under test: whoever moves the timeline gets to see it.
    throw error
  }
}

function deaf(protocol: string): HermesError {
  return new HermesError('INVALID_OPTION', {
    message: `handle: the handler of ${protocol} returned without channel.listen()`,
    hint: 'Set a listener before the handler returns, or abort the channel.',
    details: { field: 'accept' },
  })
}
