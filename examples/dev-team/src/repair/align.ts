/** One step of a hunk: a line that goes, a line that comes, or one that takes the place of another. Indexes into the two lists. */
export interface Step {
  readonly removed: number | undefined
  readonly added: number | undefined
}

/** Lines count as versions of each other from this share of equal text at both ends. */
const ALIKE = 0.4
/** Comparisons made for one hunk; a larger one, as of a rewritten file, is paired line for line. */
const MAX_COMPARISONS = 250_000

/**
 * Pairs removed and added lines so that a line stands beside its new version, both lists kept in order. Lines that are like no
 * other are paired in turn, as far as there are any between two such pairs.
 */
export function alignLines(removed: readonly string[], added: readonly string[]): Step[] {
  const steps: Step[] = []
  let i = 0
  let j = 0
  const inTurn = (untilRemoved: number, untilAdded: number): void => {
    while (i < untilRemoved || j < untilAdded) {
      steps.push({ removed: i < untilRemoved ? i++ : undefined, added: j < untilAdded ? j++ : undefined })
    }
  }
  for (const [atRemoved, atAdded] of alikePairs(removed, added)) {
    inTurn(atRemoved, atAdded)
    steps.push({ removed: i++, added: j++ })
  }
  inTurn(removed.length, added.length)
  return steps
}

/** The pairs of like lines, none crossing another, whose likeness is greatest in sum. */
function alikePairs(removed: readonly string[], added: readonly string[]): [number, number][] {
  const columns = added.length + 1
  if (removed.length * added.length > MAX_COMPARISONS) return []
  const best = new Float64Array((removed.length + 1) * columns)
  const at = (i: number, j: number): number => best[i * columns + j] as number
  const likeness = (i: number, j: number): number => alike(removed[i] as string, added[j] as string)
  for (let i = removed.length - 1; i >= 0; i--) {
    for (let j = added.length - 1; j >= 0; j--) {
      const both = likeness(i, j)
      best[i * columns + j] = Math.max(at(i + 1, j), at(i, j + 1), both >= ALIKE ? both + at(i + 1, j + 1) : 0)
    }
  }
  const pairs: [number, number][] = []
  let i = 0
  let j = 0
  while (i < removed.length && j < added.length) {
    if (at(i, j) === at(i + 1, j)) i++
    else if (at(i, j) === at(i, j + 1)) j++
    else pairs.push([i++, j++])
  }
  return pairs
}

/** Share of the longer line that is equal at the beginning and at the end of both, white space around them aside. */
function alike(one: string, other: string): number {
  const [a, b] = [one.trim(), other.trim()]
  const [longer, shorter] = a.length >= b.length ? [a, b] : [b, a]
  if (longer.length === 0) return 1
  let head = 0
  while (head < shorter.length && longer[head] === shorter[head]) head++
  let tail = 0
  while (tail < shorter.length - head && longer.at(-1 - tail) === shorter.at(-1 - tail)) tail++
  return (head + tail) / longer.length
}
