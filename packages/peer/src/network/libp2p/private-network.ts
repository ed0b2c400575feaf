import type { ConnectionProtector, MultiaddrConnection } from '@libp2p/interface'
import { reasonOf } from './dial-reason.ts'
import { corkWrites } from './tuning/cork.ts'

/** What the raw connections of a node are wrapped in. */
export interface Protection {
  readonly protector: () => ConnectionProtector
  /** The error of a dial, with what this has to say about it. `address` is the one that was dialled. */
  explain(error: unknown, address: string): unknown
  /** Why a dial of that address has not come to an end in time. */
  late(address: string): string
}

const HINT = 'a peer with another pre-shared key, or none, looks like this'
/** Addresses that something answered at, kept until their dial is over; bounded by the dials. */
const MAX_ANSWERED = 256

/**
 * With a pre-shared key everything on a connection, the first byte of Noise included, is enciphered with that key: whoever
 * does not have it learns no peer id, no protocol and no version. libp2p has one place for this and for gathering writes,
 * which goes below the cipher.
 */
export async function protection(preSharedKey: Uint8Array | undefined): Promise<Protection> {
  const cork = corkWrites()
  if (preSharedKey === undefined) return { protector: cork, explain: (error) => error, late: () => 'timeout' }
  // Loaded here, not at import: few peers are in a private network, and all want to start fast.
  const pnet = await import('@libp2p/pnet')
  const psk = Buffer.from(`/key/swarm/psk/1.0.0/\n/base16/\n${Buffer.from(preSharedKey).toString('hex')}`)
  const secret = pnet.preSharedKey({ psk })()
  const corked = cork()
  const answered = new Set<string>()
  const note = ({ direction, remoteAddr }: Partial<MultiaddrConnection>): void => {
    if (direction === 'outbound' && remoteAddr && answered.size < MAX_ANSWERED) answered.add(remoteAddr.toString())
  }
  return {
    protector: () => ({
      protect: async (connection, options) => {
        note(connection)
        return secret.protect(await corked.protect(connection, options), options)
      },
    }),
    // Nobody says that the keys differ: each side finds only noise.
    explain(error, address) {
      const known = answered.delete(address)
      const reason = reasonOf(error)
      if (!known || reason === 'wrong peer' || reason === 'refused') return error
      return new Error(`${reason}; ${HINT}`, { cause: error })
    },
    late: (address) => (answered.has(address) ? `timeout; ${HINT}` : 'timeout'),
  }
}
