import { writeSync } from 'node:fs'
// Not by way of the whole package: it is loaded again after every kill.
import { createDiskJournal } from '../../../packages/peer/src/journal/disk/disk-journal.ts'
import { numberedCommit } from './numbered.ts'

/**
 * A process that uses a journal as its parent tells it: one order per message, one answer each. `write` goes on for ever, three
 * commits a turn, and says by a line of its standard output which of them have been acknowledged.
 */
const journal = createDiskJournal({
  folder: process.argv[2] as string,
  limits: { journalSpareBytes: Number(process.argv[3] ?? 1) },
})

type Order =
  | { readonly open: true }
  | { readonly close: true }
  | { readonly write: number }
  | { readonly commit: number }
  | { readonly get: string }
  | { readonly become: number; readonly scratch: string }

async function obey(order: Order): Promise<unknown> {
  if ('open' in order) return journal.open()
  if ('close' in order) return journal.close()
  if ('commit' in order) return journal.commit(numberedCommit(order.commit))
  if ('become' in order) {
    // What is loaded later may lie where only the user that started it may read.
    const other = createDiskJournal({ folder: order.scratch })
    await other.open()
    await other.close()
    process.setgid?.(order.become)
    return process.setuid?.(order.become)
  }
  if ('get' in order) return (await journal.get('tasks', order.get))?.length
  for (let number = order.write; ; number += 3) {
    await Promise.all(
      [0, 1, 2].map(async (more) => {
        await journal.commit(numberedCommit(number + more))
        writeSync(1, `${number + more}\n`)
      }),
    )
  }
}

process.on('message', (order: Order) => {
  obey(order).then(
    (value) => process.send?.({ value }),
    (error: { code?: string; message: string; hint?: string }) =>
      process.send?.({ error: { code: error.code, message: error.message, hint: error.hint } }),
  )
})
process.on('disconnect', () => process.exit(0))
