import type { Tunables } from '../../defaults.ts'
import type { Embedder } from './embedder.ts'
import type { Compared, Lexical } from './lexical.ts'

/** What one capability means beside a wish. Plain data: part of the record of a decision. */
export interface Meaning {
  readonly by: 'words' | 'embedding' | 'name'
  /** 0..1: share of the words, or similarity. */
  readonly near: number
  /** What is compared with others: as `near`, without the words of a name that all have. */
  readonly telling: number
  /** Below this it is something else. */
  readonly least: number
  /** What it says that it does not do, where the wish asks for that. */
  readonly refuses?: string
}

/** Tells how near capabilities are to a wish in plain words. */
export interface IntentMatcher {
  /** One answer for each that is asked about, in their order. Rejects with the reason of the signal only. */
  match(compared: Compared, signal: AbortSignal): Promise<readonly Meaning[]>
}

export interface IntentMatcherOptions {
  /** Made on first use. */
  lexical(): Lexical
  readonly embedder: Embedder | undefined
  readonly tunables: Tunables
  /** The embedding function failed: the words alone decide. */
  failed(cause: unknown): void
}

export function createIntentMatcher({ lexical, embedder, tunables, failed }: IntentMatcherOptions): IntentMatcher {
  let made: Lexical | undefined
  return {
    async match(compared, signal) {
      made ??= lexical()
      const words = made
      const { wish, asked, name } = compared
      const found = words.compare(compared)
      const refusing = (refuses: string | undefined) => (refuses === undefined ? {} : { refuses })
      const byWords = found.map(
        ({ share, telling, refuses }): Meaning => ({
          by: 'words',
          near: share,
          telling,
          least: tunables.intentLeastShare,
          ...refusing(refuses),
        }),
      )
      // All describe it alike: what was meant is said by the name.
      if (name !== undefined && new Set(asked.map((entry) => words.text(entry))).size <= 1) {
        return byWords.map((one): Meaning => ({ ...one, by: 'name', near: 1, telling: 1 }))
      }
      if (!embedder) return byWords
      // The bound of what one wish may cost: those nearest by their words, where there are more.
      const order = asked.map((_, index) => index).sort((a, b) => (found[b]?.share ?? 0) - (found[a]?.share ?? 0))
      const kept = order.slice(0, tunables.intentEmbedded)
      try {
        const near = await embedder.compare(
          wish,
          kept.map((index) => {
            const entry = asked[index] as (typeof asked)[number]
            return { text: words.text(entry), negatives: words.negatives(entry).map(({ text }) => text) }
          }),
          signal,
        )
        const byIndex = new Map(kept.map((index, at) => [index, near[at]]))
        return byWords.map(({ refuses }, index): Meaning => {
          const one = byIndex.get(index)
          return {
            by: 'embedding',
            near: one?.near ?? 0,
            telling: one?.near ?? 0,
            least: tunables.intentLeastCosine,
            // What the words refuse stays refused, whatever a model makes of it.
            ...refusing(refuses ?? one?.refuses),
          }
        })
      } catch (cause) {
        if (signal.aborted) throw cause
        failed(cause)
        return byWords
      }
    },
  }
}
