import { HermesError, isHermesError } from '@hermes-peer/protocol'

/** That a source could not be asked, with the reason. */
export function unreachable(source: string, why: unknown): HermesError {
  if (isHermesError(why) && why.code === 'DIRECTORY_UNREACHABLE') return why
  return new HermesError('DIRECTORY_UNREACHABLE', {
    message: `${source} cannot be reached: ${reasonOf(why)}`,
    details: { sources: [{ source, reason: reasonOf(why) }] },
    ...(why instanceof Error ? { cause: why } : {}),
  })
}

/** One line that says why; of an error of many attempts, why the first failed. */
export function reasonOf(why: unknown): string {
  const told = isHermesError(why) ? (why.details.sources as { reason?: unknown }[] | undefined)?.[0]?.reason : undefined
  if (typeof told === 'string') return told
  if (why instanceof AggregateError && why.message === '' && why.errors.length > 0) return reasonOf(why.errors[0])
  if (why instanceof Error) {
    const { code } = why as NodeJS.ErrnoException
    return (why.message || code || why.name).slice(0, 200)
  }
  return String(why).slice(0, 200)
}

export const closed = (source: string): HermesError =>
  new HermesError('STOPPED', { message: `${source} has been closed` })

/** The reason of a signal that ends the wait for a source. */
export const tooLate = (): HermesError => new HermesError('TIMEOUT', { message: 'no answer in time' })
