import type { Journal, JournalChange } from 'hermes-peer'

/** Some values are larger than a block of the log, and all of them together than what LevelDB keeps in memory. */
const SIZES = [10, 300, 40_000, 5_000]

/** Counts upwards from a byte that depends on both. */
function bytesOf(number: number, half: number): Uint8Array {
  const row = Uint8Array.from({ length: 256 }, (_, i) => (number * 31 + half * 7 + i) & 0xff)
  return Buffer.alloc(SIZES[number % SIZES.length] as number, row)
}

/** Two entries in different tables that belong together: a commit is there by halves when only one of them is. */
export function numberedCommit(number: number): JournalChange[] {
  return [
    { table: 'tasks', key: `n/${String(number).padStart(8, '0')}`, value: bytesOf(number, 0) },
    { table: 'updates', key: `n/${String(number).padStart(8, '0')}`, value: bytesOf(number, 1) },
  ]
}

/** The numbers of the commits that are stored, ascending. Throws for a commit that is there by halves or altered. */
export async function numbersIn(journal: Journal): Promise<number[]> {
  const halves: number[][] = []
  for (const [half, table] of (['tasks', 'updates'] as const).entries()) {
    const found: number[] = []
    for await (const [key, value] of journal.entries(table, 'n/')) {
      const number = Number(key.slice(2))
      if (Buffer.compare(value, bytesOf(number, half)) !== 0) throw new Error(`${table} ${key} is altered`)
      found.push(number)
    }
    halves.push(found)
  }
  const [left, right] = halves as [number[], number[]]
  if (left.join() !== right.join()) throw new Error(`by halves: ${left} and ${right}`)
  return left
}
