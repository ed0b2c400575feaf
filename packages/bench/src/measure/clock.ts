/** Time of day with fractions of a ms, comparable between the processes of one machine. */
export function epochMs(): number {
  return performance.timeOrigin + performance.now()
}

/** Settles as `promise` does, or rejects after `ms`. */
export async function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer in ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
