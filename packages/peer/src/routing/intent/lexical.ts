import type { CapabilityEntry } from '@hermes-peer/protocol'
import { type Bag, bagOf, shares } from './bm25.ts'
import { createReader, type Negative } from './negatives.ts'
import { createTokenizer } from './tokens.ts'

/** How near one capability is to a wish. */
export interface Nearness {
  /** Share of the wish's words that it has, by their rarity, 0..1. */
  readonly share: number
  /** The same without the words of the name, where all that are asked about have that name. */
  readonly telling: number
  /** What it says that it does not do, where the wish asks for that. */
  readonly refuses: string | undefined
}

export interface Compared {
  readonly wish: string
  /** What is asked about. */
  readonly asked: readonly CapabilityEntry[]
  /** All that are known: how rare a word is among them tells how much it says. */
  readonly all: readonly CapabilityEntry[]
  /** The name that all that are asked about have. */
  readonly name?: string | undefined
}

/** Compares a wish with capabilities by their words. */
export interface Lexical {
  /** One answer for each that is asked about, in their order. */
  compare(compared: Compared): readonly Nearness[]
  /** The entry as one text, without what it does not do. */
  text(entry: CapabilityEntry): string
  negatives(entry: CapabilityEntry): readonly Negative[]
}

interface Read {
  readonly text: string
  readonly bag: Bag
  readonly negatives: readonly Negative[]
}

/** A name is chosen with care, a description is prose. */
const NAME_WEIGHT = 1.5
const LABEL_WEIGHT = 1
/** A wish asks for what is not done when it has this share of the words that only the negative has. */
const REFUSED_AT = 0.5

export function createLexical(): Lexical {
  const tokens = createTokenizer()
  const readEntry = createReader(tokens)
  /** By manifest entry, gone with the manifest: entries are frozen. */
  const known = new WeakMap<CapabilityEntry, Read>()

  const read = (entry: CapabilityEntry): Read => {
    let found = known.get(entry)
    if (!found) {
      const { positive, negatives } = readEntry(entry)
      const labels = Object.values(entry.labels).flat().join(' ')
      found = {
        text: `${entry.name.replaceAll(/[_.-]+/g, ' ')}. ${positive} ${labels}`.trim(),
        negatives,
        bag: bagOf([
          { words: tokens(entry.name), weight: NAME_WEIGHT },
          { words: tokens(positive), weight: 1 },
          { words: tokens(labels), weight: LABEL_WEIGHT },
        ]),
      }
      known.set(entry, found)
    }
    return found
  }

  return {
    text: (entry) => read(entry).text,
    negatives: (entry) => read(entry).negatives,
    compare({ wish, asked, all, name }) {
      const words = tokens(wish)
      const reads = asked.map(read)
      const bags = reads.map(({ bag }) => bag)
      const known = all.map((entry) => read(entry).bag)
      const byAll = shares(words, bags, known)
      const named = new Set(name === undefined ? [] : tokens(name))
      const telling = words.filter((word) => !named.has(word))
      const byTelling = named.size === 0 || telling.length === 0 ? byAll : shares(telling, bags, known)
      const spoken = new Set(words)
      return reads.map(({ bag, negatives }, index) => ({
        share: byAll[index] as number,
        telling: byTelling[index] as number,
        refuses: negatives.find((negative) => asksFor(spoken, negative, bag))?.text,
      }))
    },
  }
}

/** Whether a wish asks for what is not done. */
function asksFor(asked: ReadonlySet<string>, { words, only }: Negative, { weights }: Bag): boolean {
  if (only.length > 0) return !only.some((word) => asked.has(word))
  // What it also does ("translates texts, but no legal texts") is not what tells the two apart.
  const telling = words.filter((word) => !weights.has(word))
  if (telling.length === 0) return words.every((word) => asked.has(word))
  return telling.filter((word) => asked.has(word)).length >= telling.length * REFUSED_AT
}
