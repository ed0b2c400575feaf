import { HermesError } from '@hermes-peer/protocol'
import type { Multiaddr } from '@multiformats/multiaddr'

const KNOWN: readonly (readonly [RegExp, 'ADDRESS_IN_USE' | 'INVALID_ADDRESS', string])[] = [
  [/EADDRINUSE/, 'ADDRESS_IN_USE', 'another process listens there'],
  [/EADDRNOTAVAIL/, 'INVALID_ADDRESS', 'this machine does not have that address'],
  [/EACCES/, 'INVALID_ADDRESS', 'this user may not listen on that port'],
  [/ENOTFOUND|EAI_AGAIN/, 'INVALID_ADDRESS', 'its name cannot be resolved'],
  [/UnsupportedListenAddressError/, 'INVALID_ADDRESS', 'only TCP can be listened on'],
]

/**
 * Why a node could not start, as an error that names the listen address. libp2p reports all addresses in one text of
 * lines `<address>: <stack>`.
 */
export function startError(error: unknown, listen: readonly Multiaddr[]): HermesError {
  const text = error instanceof Error ? error.message : ''
  for (const address of listen.map(String)) {
    const [, after] = text.split(`\n  ${address}: `)
    if (after === undefined) continue
    const own = after.split(/\n {2}\//)[0] ?? ''
    const [, code, what] = KNOWN.find(([pattern]) => pattern.test(own)) ?? [
      undefined,
      'INVALID_ADDRESS' as const,
      own.trim().split('\n')[0],
    ]
    return new HermesError(code, {
      message: `listen: ${address}: ${what}`,
      details: { field: 'listen', address },
      cause: error,
    })
  }
  return HermesError.from(error)
}
