import { utf8 } from '@hermes-peer/protocol'
import type { Journal } from '../journal/journal.ts'

/** What identity keeps across restarts: small records as JSON, in one table of the journal. */
export interface Notes {
  /** Records whose key begins with `prefix`. A record that cannot be read is told of and left out. */
  entries(prefix: string): AsyncIterable<readonly [key: string, value: unknown]>
  /** Stores or, without a value, removes a record. What cannot be stored is told of: it then holds for this life only. */
  keep(key: string, value: unknown): void
}

export function createNotes({ journal, report }: { journal: Journal; report: (text: string) => void }): Notes {
  return {
    async *entries(prefix) {
      for await (const [key, bytes] of journal.entries('serials', prefix)) {
        try {
          yield [key, JSON.parse(Buffer.from(bytes).toString('utf8'))]
        } catch (error) {
          report(`identity: the record ${key} cannot be read: ${(error as Error).message}`)
        }
      }
    },
    keep(key, value) {
      const bytes = value === undefined ? undefined : utf8(JSON.stringify(value))
      journal.commit([{ table: 'serials', key, value: bytes }]).catch((error: Error) => {
        report(`identity: ${key} could not be stored and is forgotten with this process: ${error.message}`)
      })
    },
  }
}
