/** Looks every few milliseconds until `check` gives something true without throwing; after `ms` it throws what it saw last. */
export async function eventually<T>(
  check: () => T | Promise<T>,
  what = 'the condition',
  ms = 15_000,
): Promise<NonNullable<T>> {
  const end = performance.now() + ms
  let last: unknown
  for (;;) {
    try {
      last = undefined
      const value = await check()
      if (value) return value
    } catch (error) {
      last = error
    }
    if (performance.now() > end) throw new Error(`${what} did not come true within ${ms} ms`, { cause: last })
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** The promise, or a failure that names what was waited for. */
export async function within<T>(ms: number, what: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took over ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
