import type { EnvelopeParts } from '../envelope/frame.ts'
import { type Header, mayOpenStream } from '../envelope/header-types.ts'
import { verifyPayload } from '../envelope/seal.ts'
import { HermesError } from '../errors/hermes-error.ts'
import { LIMITS } from '../limits.ts'

/**
 * Whether an envelope may open a stream, and where its payload is: with it (`inline`), or in the chunks that follow
 * (`apart`). Call it once the signature holds. Throws `MALFORMED` for what belongs on a link, `PAYLOAD_TOO_LARGE` over 64 MiB,
 * `PAYLOAD_MISMATCH`.
 */
export function checkOpening(header: Header, parts: EnvelopeParts): 'inline' | 'apart' {
  if (!mayOpenStream(header)) {
    throw new HermesError('MALFORMED', { message: `a ${header.message_type} of this size travels on a link` })
  }
  const { payload_size: size } = header
  if (size > LIMITS.payload) {
    throw new HermesError('PAYLOAD_TOO_LARGE', {
      message: `the payload has ${size} bytes, the limit is ${LIMITS.payload}`,
      details: { size, limit: LIMITS.payload },
    })
  }
  if (parts.payload.length === 0 && size > LIMITS.envelope - LIMITS.header) return 'apart'
  if (header.call_type !== 'stream') {
    throw new HermesError('PAYLOAD_MISMATCH', { message: 'a payload that travels in chunks may not stand here too' })
  }
  verifyPayload(header, parts)
  return 'inline'
}
