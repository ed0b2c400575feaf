import { eventually } from './eventually.ts'
import type { RawStream } from './raw-stream.ts'
import type { Victim } from './victim.ts'

/** How an attack on the handshake ended: the reason in the victim's own log, and what the other side was told. */
export interface Verdict {
  linked: boolean
  code?: string
  told?: unknown
}

/** Codes that a stranger may learn. */
export const TOLD = [
  'HANDSHAKE_REFUSED',
  'UNSUPPORTED_VERSION',
  'CLOCK_SKEW',
  'NOT_ALLOWED',
  'IDENTITY_MISMATCH',
  'DUPLICATE_AGENT',
]

/** Waits for the end of the handshake that was last begun after `victim.mark()`. */
export async function verdictOf(victim: Victim, stream: RawStream): Promise<Verdict> {
  const end = await eventually(
    () => victim.of('link.up')[0] ?? victim.of('handshake.refused')[0],
    'an end of the handshake',
  )
  if (end.type === 'link.up') return { linked: true }
  const told = await stream.told()
  stream.close()
  return { linked: false, code: end.code, told: told?.error_code, ...extra(told) }
}

/** Whatever was told beside the code (and the offset of a clock) is too much. */
function extra(told: Record<string, unknown> | undefined): object {
  const more = Object.keys(told ?? {}).filter((key) => key !== 'error_code' && key !== 'offset_ms')
  return more.length > 0 ? { more } : {}
}

/** Refused for that reason, and told only that. */
export const refused = (code: string, told: string = TOLD.includes(code) ? code : 'HANDSHAKE_REFUSED'): Verdict => ({
  linked: false,
  code,
  told,
})
