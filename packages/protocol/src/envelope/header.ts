import { decodeCompact, encodeCompact } from '../bytes/compact-json.ts'
import { HermesError } from '../errors/hermes-error.ts'
import { LIMITS } from '../limits.ts'
import { checkHeader } from './header-check.ts'
import { defaultExpiry, defaultTimeoutMs, type Header, type HeaderDraft, PROTOCOL_VERSION } from './header-types.ts'

/**
 * The header's bytes: compact JSON in the order of the table, what equals its default left out.
 * Throws `MALFORMED` for anything but printable ASCII and `LIMIT_EXCEEDED` over 4 KiB.
 */
export function encodeHeader(draft: HeaderDraft): Uint8Array {
  const standardTimeout = defaultTimeoutMs(draft.message_type, draft.call_type ?? 'request')
  const timeoutMs = draft.timeout_ms ?? standardTimeout
  const bytes = encodeCompact({
    version: draft.version ?? PROTOCOL_VERSION,
    network: draft.network,
    message_id: draft.message_id,
    correlation_id: draft.correlation_id,
    trace_id: draft.trace_id,
    span_id: draft.span_id,
    message_type: draft.message_type,
    sender: draft.sender,
    recipient: draft.recipient,
    target_capability: draft.target_capability,
    call_type: unless(draft.call_type, 'request'),
    session_id: draft.session_id,
    epoch: draft.epoch,
    recipient_epoch: unless(draft.recipient_epoch, 0),
    sequence: unless(draft.sequence, 0),
    ordered: unless(draft.ordered, true),
    timestamp: draft.timestamp,
    expires_at: unless(draft.expires_at, defaultExpiry(draft.message_type, draft.timestamp, timeoutMs)),
    timeout_ms: unless(timeoutMs, standardTimeout),
    priority: unless(draft.priority, 3),
    attempt: unless(draft.attempt, 1),
    max_hops: unless(draft.max_hops, 4),
    path: draft.path && draft.path.length > 0 ? draft.path : undefined,
    ack: unless(draft.ack, 'none'),
    content_type: unless(draft.content_type, 'application/json'),
    schema_version: unless(draft.schema_version, '1'),
    payload_sha256: draft.payload_sha256,
    payload_size: draft.payload_size,
    delegation: draft.delegation,
    in_reply_to: draft.in_reply_to,
  })
  if (bytes.length > LIMITS.header) throw tooLarge(bytes.length)
  return bytes
}

/**
 * Reads a header strictly. Throws `MALFORMED` that names the field, `LIMIT_EXCEEDED`, or `UNSUPPORTED_VERSION` for a higher
 * major version; of a higher minor version the unknown keys are ignored.
 */
export function decodeHeader(bytes: Uint8Array): Header {
  if (bytes.length > LIMITS.header) throw tooLarge(bytes.length)
  return checkHeader(decodeCompact(bytes, 'header'))
}

function unless<T>(value: T | undefined, standard: T): T | undefined {
  return value === standard ? undefined : value
}

function tooLarge(size: number): HermesError {
  return new HermesError('LIMIT_EXCEEDED', {
    message: `the header has ${size} bytes, the limit is ${LIMITS.header}`,
    details: { size, limit: LIMITS.header },
  })
}
