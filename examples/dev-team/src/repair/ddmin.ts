import { firstPassing } from './first-passing.ts'

export interface ReduceOptions<T> {
  /** Known to pass as a whole. */
  items: readonly T[]
  /** Whether these items alone pass, in their given order. Its signal aborts when the answer no longer matters. */
  passes: (items: readonly T[], signal: AbortSignal) => Promise<boolean>
  /** How many can be tried at the same time; asked before each step. */
  parallel: () => number | Promise<number>
  signal?: AbortSignal
  /** Told each time a smaller set passes, so that the best so far survives an end of the budget. */
  onReduced?: (items: readonly T[]) => void
}

/**
 * Delta debugging (Zeller and Hildebrandt): reduces a set that passes to one from which no single item can be taken away.
 * Needs at most a square, mostly a multiple of a logarithm, of `items.length` trials. Rejects with the first error of a trial.
 */
export async function ddmin<T>({ items, passes, parallel, signal, onReduced }: ReduceOptions<T>): Promise<T[]> {
  let current = [...items]
  let parts = 2
  while (current.length >= 2) {
    const chunks = split(current, parts)
    // With two parts the rest of one is the other.
    const rests = parts === 2 ? [] : chunks.map((_, i) => chunks.flatMap((chunk, j) => (i === j ? [] : chunk)))
    const tried = [...chunks, ...rests]
    const found = await firstPassing({
      candidates: tried,
      passes,
      parallel: await parallel(),
      ...(signal === undefined ? {} : { signal }),
    })
    if (found === undefined) {
      if (parts >= current.length) break
      parts = Math.min(parts * 2, current.length)
      continue
    }
    current = tried[found] as T[]
    parts = found < chunks.length ? 2 : Math.max(parts - 1, 2)
    onReduced?.(current)
  }
  return current
}

function split<T>(items: readonly T[], parts: number): T[][] {
  return Array.from({ length: parts }, (_, i) =>
    items.slice(Math.floor((i * items.length) / parts), Math.floor(((i + 1) * items.length) / parts)),
  )
}
