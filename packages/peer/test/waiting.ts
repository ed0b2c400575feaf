/** Resolves when the condition holds; looks again with every turn of the event loop that has something to do. */
export async function until(condition: () => boolean, what = 'the condition', ms = 15_000): Promise<void> {
  const end = performance.now() + ms
  while (!condition()) {
    if (performance.now() > end) throw new Error(`${what} did not come true within ${ms} ms`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** A promise, and the ways to settle it. */
export function deferred<T = void>() {
  let resolve = (_: T): void => undefined
  let reject = (_: unknown): void => undefined
  const promise = new Promise<T>((yes, no) => {
    resolve = yes
    reject = no
  })
  promise.catch(() => undefined)
  return { promise, resolve, reject }
}
