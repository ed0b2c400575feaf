import { createDiskJournal } from 'hermes-peer'
import type { Figures, Order } from './scenario.ts'

/** What one commit stores, bytes: a small task. */
const VALUE_BYTES = 1_000
/** The two ways take turns, so that what changes on the disk meanwhile favours none. */
const TURNS = 8

/** Commits that are stored per second: each awaited before the next, so that each is a write of its own, and many in one turn. */
export async function journal({ folder, ms, together }: Order & { measure: 'journal' }): Promise<Figures> {
  const disk = createDiskJournal({ folder })
  await disk.open()
  const value = new Uint8Array(VALUE_BYTES)
  let key = 0
  const commits = (count: number) =>
    Promise.all(Array.from({ length: count }, () => disk.commit([{ table: 'tasks', key: `k${key++}`, value }])))
  /** Commits, and the ms that they took. */
  const timed = async (count: number, total: { commits: number; ms: number }): Promise<void> => {
    const from = performance.now()
    for (const end = from + ms / TURNS / 2; performance.now() < end; total.commits += count) await commits(count)
    total.ms += performance.now() - from
  }
  const alone = { commits: 0, ms: 0 }
  const grouped = { commits: 0, ms: 0 }
  await commits(together)
  for (let turn = 0; turn < TURNS; turn++) {
    await timed(1, alone)
    await timed(together, grouped)
  }
  await disk.close()
  const [alonePerSecond, groupedPerSecond] = [alone, grouped].map((one) => (1000 * one.commits) / one.ms) as [
    number,
    number,
  ]
  return { alonePerSecond, groupedPerSecond, times: groupedPerSecond / alonePerSecond }
}
