import { type Header, HermesError, MAX_LIFE_MS } from '@hermes-peer/protocol'

/** Judges when an envelope was said and until when it counts. Throws `EXPIRED`, `EXPIRY_TOO_FAR`. */
export function judgeTime(
  header: Header,
  { now, offsetMs, toleranceMs }: { readonly now: number; readonly offsetMs: number; readonly toleranceMs: number },
): void {
  const expires = header.expires_at - offsetMs
  if (now > expires + toleranceMs) {
    throw new HermesError('EXPIRED', {
      message: `expired ${now - expires} ms ago`,
      details: { expired_ms: now - expires },
    })
  }
  if (expires > now + MAX_LIFE_MS + toleranceMs || header.timestamp - offsetMs > now + toleranceMs) {
    throw new HermesError('EXPIRY_TOO_FAR')
  }
}
