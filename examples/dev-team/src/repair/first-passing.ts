import { linkedController } from '../concurrency/linked-controller.ts'

export interface FirstPassingOptions<T> {
  candidates: readonly T[]
  passes: (candidate: T, signal: AbortSignal) => Promise<boolean>
  /** Most trials at the same time; below 1 counts as 1. */
  parallel: number
  signal?: AbortSignal
}

/**
 * Index of a candidate that passes, undefined if none does. The first answer wins and ends the other trials. Rejects with
 * the first error; no trial is running when it ends.
 */
export async function firstPassing<T>({
  candidates,
  passes,
  parallel,
  signal,
}: FirstPassingOptions<T>): Promise<number | undefined> {
  const controller = linkedController(signal)
  const failures: unknown[] = []
  let winner: number | undefined
  let next = 0

  const work = async (): Promise<void> => {
    while (next < candidates.length && !controller.signal.aborted) {
      const index = next++
      try {
        const passed = await passes(candidates[index] as T, controller.signal)
        if (!passed || controller.signal.aborted) continue
        winner = index
        controller.abort()
      } catch (error) {
        if (controller.signal.aborted && !signal?.aborted) return
        failures.push(error)
        controller.abort(error)
      }
    }
  }
  try {
    await Promise.all(Array.from({ length: Math.max(1, Math.min(parallel, candidates.length)) }, work))
  } finally {
    controller.dispose()
  }
  signal?.throwIfAborted()
  if (failures.length > 0) throw failures[0]
  return winner
}
