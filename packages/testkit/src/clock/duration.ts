import { HermesError } from '@hermes-peer/protocol'

/** Milliseconds, or a number with a unit: `'250ms'`, `'5s'`, `'1.5m'`, `'2h'`, `'1d'`. */
export type Duration = number | string

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
const FORM = /^(\d{1,12}(?:\.\d{1,6})?)(ms|s|m|h|d)$/

/** Milliseconds of a duration. Throws `INVALID_OPTION` that names `field`. */
export function toMs(duration: Duration, field: string): number {
  if (typeof duration === 'number') {
    if (Number.isFinite(duration) && duration >= 0) return duration
  } else {
    const [, amount, unit] = FORM.exec(duration) ?? []
    if (amount !== undefined && unit !== undefined) return Number(amount) * UNITS[unit as keyof typeof UNITS]
  }
  throw new HermesError('INVALID_OPTION', {
    message: `${field}: ${JSON.stringify(String(duration).slice(0, 40))} is not a duration`,
    hint: "Give milliseconds (0 or more), or text like '250ms', '5s', '2m'.",
    details: { field },
  })
}
