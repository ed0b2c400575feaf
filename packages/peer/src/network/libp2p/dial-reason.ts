import { HermesError } from '@hermes-peer/protocol'

/** One address that was tried, and why it did not work. */
export interface Tried {
  readonly address: string
  /** `refused`, `timeout`, `wrong peer`, `unsupported`, `denied`, `not admitted here`, `not tried`, or the text of the error. */
  readonly reason: string
}

/** Longest text of a foreign error that is kept, in UTF-16 units. */
const MAX_TEXT = 200

const BY_CODE: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refused',
  ETIMEDOUT: 'timeout',
  ECONNRESET: 'denied',
  EPIPE: 'denied',
  EHOSTUNREACH: 'host unreachable',
  ENETUNREACH: 'network unreachable',
  ENOTFOUND: 'name not found',
}

const BY_NAME: Readonly<Record<string, string>> = {
  TimeoutError: 'timeout',
  AbortError: 'timeout',
  UnexpectedPeerError: 'wrong peer',
  TransportUnavailableError: 'unsupported',
  UnsupportedProtocolError: 'unsupported',
  DialDeniedError: 'not admitted here',
  ConnectionDeniedError: 'denied',
  ConnectionInterceptedError: 'not admitted here',
  ConnectionClosedError: 'denied',
  MuxerClosedError: 'denied',
  StreamResetError: 'denied',
  StreamClosedError: 'denied',
  StreamStateError: 'denied',
  UnexpectedEOFError: 'denied',
}

/** The upgrade wraps every cause in an error of its own and keeps only the text. */
const BY_TEXT: readonly (readonly [RegExp, string])[] = [
  [/does not match expected remote identity key/, 'wrong peer'],
  [/ECONNREFUSED/, 'refused'],
  [/aborted|timed? ?out/i, 'timeout'],
  // What comes cannot be cut into messages: it is enciphered, or no libp2p at all.
  [
    /Message length|varint|multistream|did not have LF|unsupported protocol/i,
    'no common language (a private network?)',
  ],
  [
    /ECONNRESET|EPIPE|unexpected(ly)? (EOF|end)|stream (was|has been) (closed|reset)|connection (was|is) closed/i,
    'denied',
  ],
]

/**
 * Says in one or two words why an address did not work. `denied`: something answered there and closed the
 * connection before it could be used, which is how a peer that is full or does not want us looks from outside.
 */
export function reasonOf(error: unknown): string {
  // libp2p rejects with the `close` event itself when a stream ends while it is negotiated.
  if (error instanceof Event) return 'error' in error && error.error instanceof Error ? reasonOf(error.error) : 'denied'
  if (!(error instanceof Error)) return String(error).slice(0, MAX_TEXT)
  const { code, name, message } = error as Error & { code?: unknown }
  return (
    (typeof code === 'string' ? BY_CODE[code] : undefined) ??
    BY_NAME[name] ??
    BY_TEXT.find(([pattern]) => pattern.test(message))?.[1] ??
    message.slice(0, MAX_TEXT)
  )
}

/** `PEER_UNREACHABLE` that lists each address with its reason. */
export function unreachable(who: string, tried: readonly Tried[], cause?: unknown): HermesError {
  const list = tried.map(({ address, reason }) => `${address}: ${reason}`).join('; ')
  return new HermesError('PEER_UNREACHABLE', {
    message: `${who} cannot be reached: ${list === '' ? 'no address of it is known' : list}`,
    details: { tried },
    cause,
  })
}
