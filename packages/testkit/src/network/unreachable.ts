import { HermesError } from '@hermes-peer/protocol'

/** An address that was tried, and why it led nowhere. */
export interface Tried {
  readonly address: string
  readonly reason: string
}

/** `PEER_UNREACHABLE` with each address and its own reason in `details.tried`. */
export function unreachable(peerId: string | undefined, tried: readonly Tried[]): HermesError {
  const reasons = tried.map(({ address, reason }) => `${address} (${reason})`).join(', ')
  return new HermesError('PEER_UNREACHABLE', {
    message: `${peerId ?? 'peer'}: not reached; ${reasons === '' ? 'no address is known' : `tried ${reasons}`}`,
    details: { tried },
  })
}
