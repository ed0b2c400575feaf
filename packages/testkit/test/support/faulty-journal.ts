import type { Journal, JournalChange } from 'hermes-peer'

/** Mistakes that a journal could make, each of which the compliance suite must catch. */
const MISTAKES = {
  'forgets a removal': (journal: Journal): Partial<Journal> => ({
    commit: (changes) => journal.commit(changes.filter(({ value }) => value !== undefined)),
  }),
  'acknowledges before it has stored': (journal) => ({
    commit: async (changes) => void journal.commit(changes).catch(() => undefined),
  }),
  'stores the changes of a commit one by one': (journal) => ({
    commit: async (changes) => {
      for (const change of changes) await journal.commit([change])
    },
  }),
  'turns the order round': (journal) => ({
    commit: (changes: readonly JournalChange[]) => journal.commit([...changes].reverse()),
  }),
  'lets prefixes run over': (journal) => ({
    entries: (table) => journal.entries(table),
  }),
  'ends after the first hundred entries': (journal) => ({
    async *entries(table, prefix) {
      let count = 0
      for await (const entry of journal.entries(table, prefix)) if (count++ < 100) yield entry
    },
  }),
  'says it is durable for nobody': () => ({ durable: false }),
  'takes commits after close': (journal) => ({
    commit: (changes) => journal.commit(changes).catch(() => undefined),
  }),
} satisfies Record<string, (journal: Journal) => Partial<Journal>>

export const FAULTY = Object.keys(MISTAKES) as (keyof typeof MISTAKES)[]

export function faulty(journal: Journal, mistake: keyof typeof MISTAKES): Journal {
  const right: Journal = {
    durable: journal.durable,
    open: () => journal.open(),
    commit: (changes) => journal.commit(changes),
    get: (table, key) => journal.get(table, key),
    entries: (table, prefix) => journal.entries(table, prefix),
    close: () => journal.close(),
  }
  return { ...right, ...MISTAKES[mistake](journal) }
}
