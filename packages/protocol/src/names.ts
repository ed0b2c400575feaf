import { HermesError } from './errors/hermes-error.ts'

/** One segment of a name: byte-exact lower-case ASCII, so that look-alikes and other encodings cannot pass. */
const SEGMENT = /^[a-z0-9][a-z0-9._-]{0,63}$/
const MAJOR = /^[1-9][0-9]{0,5}$/

/** Longest agent id in characters. */
export const MAX_AGENT_ID = 128

export const ID_PATTERNS = {
  message_id: /^msg_[a-zA-Z0-9]{16}$/,
  correlation_id: /^corr_[a-zA-Z0-9]{16}$/,
  session_id: /^sess_[a-zA-Z0-9]{16}$/,
  task_id: /^task_[a-zA-Z0-9]{16}$/,
} as const

/** `network`, topic and bare capability names. */
export function isName(value: unknown): value is string {
  return typeof value === 'string' && SEGMENT.test(value)
}

/** One to four segments joined by `/`, at most 128 characters. */
export function isAgentId(value: unknown): value is string {
  if (typeof value !== 'string' || value.length > MAX_AGENT_ID) return false
  const segments = value.split('/')
  return segments.length <= 4 && segments.every((segment) => SEGMENT.test(segment))
}

/** A name, or `name@<major>` with a major other than 1 (which is never written). */
export function isCapabilityName(value: unknown): value is string {
  if (typeof value !== 'string') return false
  const at = value.indexOf('@')
  if (at < 0) return SEGMENT.test(value)
  const major = value.slice(at + 1)
  return SEGMENT.test(value.slice(0, at)) && MAJOR.test(major) && major !== '1'
}

/** Names under this prefix are what every peer offers by itself. */
export const RESERVED_PREFIX = 'hermes.'

/** Names under `hermes.` belong to the runtime. */
export function isReservedName(name: string): boolean {
  return name.startsWith(RESERVED_PREFIX)
}

const KINDS = {
  network: isName,
  topic: isName,
  capability: isCapabilityName,
  agent_id: isAgentId,
} as const

/** Throws `INVALID_NAME` that names the field, shows the value escaped and shortened, and says the form. */
export function checkName(kind: keyof typeof KINDS, value: unknown, field: string = kind): string {
  if (KINDS[kind](value)) return value as string
  const shown = JSON.stringify(typeof value === 'string' ? value.slice(0, 80) : String(value)).replace(
    /[^\x20-\x7e]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  throw new HermesError('INVALID_NAME', {
    message: `${field}: ${shown} is not a valid ${kind}`,
    hint:
      kind === 'agent_id'
        ? 'One to four segments joined by "/", each of lower-case ASCII letters, digits, dot, underscore or hyphen, beginning with a letter or digit; at most 128 characters.'
        : 'Lower-case ASCII letters, digits, dot, underscore or hyphen, beginning with a letter or digit; at most 64 characters.',
    details: { field },
  })
}
