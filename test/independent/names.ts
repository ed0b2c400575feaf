const NAME = /^[a-z0-9][a-z0-9._-]{0,63}$/

/** A network or topic name. */
export const isName = (text: unknown): text is string => typeof text === 'string' && NAME.test(text)

/** One to four names joined by `/`, at most 128 characters. */
export function isAgentId(text: unknown): text is string {
  if (typeof text !== 'string' || text.length > 128) return false
  const segments = text.split('/')
  return segments.length <= 4 && segments.every(isName)
}

/** A name that may end in `@<major>`; `@1` is never written, so it is no legal spelling. */
export function isCapability(text: unknown): text is string {
  if (typeof text !== 'string') return false
  const [name, major, ...more] = text.split('@')
  if (!isName(name) || more.length > 0) return false
  return major === undefined || (/^[1-9][0-9]*$/.test(major) && major !== '1')
}

/** `agent_id#capability`. */
export function isPathEntry(text: unknown): text is string {
  if (typeof text !== 'string') return false
  const [agent, capability, ...more] = text.split('#')
  return more.length === 0 && isAgentId(agent) && isCapability(capability)
}

const idPattern = (prefix: string): RegExp => new RegExp(`^${prefix}_[a-zA-Z0-9]{16}$`)
const MESSAGE = idPattern('msg')
const CORRELATION = idPattern('corr')
const SESSION = idPattern('sess')

const matches =
  (pattern: RegExp) =>
  (value: unknown): value is string =>
    typeof value === 'string' && pattern.test(value)

export const isMessageId = matches(MESSAGE)
export const isCorrelationId = matches(CORRELATION)
export const isSessionId = matches(SESSION)
export const isHash = matches(/^[0-9a-f]{64}$/)
export const isFingerprint = matches(/^sha256:[0-9a-f]{64}$/)

/** W3C trace context: of the right length and not all zeros. */
export const isTraceId = matches(/^(?!0{32}$)[0-9a-f]{32}$/)
export const isSpanId = matches(/^(?!0{16}$)[0-9a-f]{16}$/)
