import type { Journal, JournalLimits } from 'hermes-peer'
import { JOURNAL_CHECKS } from './journal-checks.ts'

/** A place for journals: what one of them stored, the next one finds, if it is durable. */
export interface JournalHome {
  /** A journal that is not open yet. */
  journal(limits?: Partial<JournalLimits>): Journal
  /** Lets time pass until the promise settles. Default: real time. */
  settle?<T>(promise: Promise<T>): Promise<T>
  dispose(): Promise<void>
}

export type MakeJournalHome = () => Promise<JournalHome>

/** One promise of `Journal`. `run` rejects with an assertion error when it is not kept. */
export interface JournalCheck {
  readonly name: string
  run(): Promise<void>
}

/**
 * What each implementation of `Journal` must do, as plain functions for any test runner:
 * `for (const { name, run } of journalCompliance(makeHome)) test(name, run)`.
 */
export function journalCompliance(makeHome: MakeJournalHome): JournalCheck[] {
  return Object.entries(JOURNAL_CHECKS).map(([name, check]) => ({
    name,
    async run() {
      const home = await makeHome()
      const opened: Journal[] = []
      const settle = <T>(promise: Promise<T>): Promise<T> => home.settle?.(promise) ?? promise
      const make = (limits?: Partial<JournalLimits>): Journal => {
        const journal = home.journal(limits)
        opened.push(journal)
        return journal
      }
      try {
        await settle(check(make))
      } finally {
        await settle(Promise.all(opened.map((journal) => journal.close())))
        await home.dispose()
      }
    },
  }))
}
