import { type AnySchema, checkAgainst, type ErrorCode } from '@hermes-peer/protocol'

/**
 * Like `checkAgainst`, but takes null for undefined and the other way round where the schema knows only one of them: JSON has no
 * undefined, so it travels as null.
 */
export function checkNullish(
  schema: AnySchema,
  value: unknown,
  what: string,
  options: { code?: ErrorCode } = {},
): unknown {
  if (value !== undefined && value !== null) return checkAgainst(schema, value, what, options)
  const other = (): unknown => checkAgainst(schema, value === null ? undefined : null, what, options)
  const orFirst = (first: unknown): unknown => {
    try {
      const second = other()
      return second instanceof Promise
        ? second.catch(() => {
            throw first
          })
        : second
    } catch {
      throw first
    }
  }
  try {
    const checked = checkAgainst(schema, value, what, options)
    return checked instanceof Promise ? checked.catch(orFirst) : checked
  } catch (first) {
    return orFirst(first)
  }
}
