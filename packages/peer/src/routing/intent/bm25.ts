/** A text as a bag of words, each with its weight: how often it stands there, more in a name than in a description. */
export interface Bag {
  readonly weights: ReadonlyMap<string, number>
  /** Sum of the weights. */
  readonly length: number
}

/** `fields`: lists of words with the weight of each. */
export function bagOf(fields: readonly { readonly words: readonly string[]; readonly weight: number }[]): Bag {
  const weights = new Map<string, number>()
  let length = 0
  for (const { words, weight } of fields) {
    for (const word of words) weights.set(word, (weights.get(word) ?? 0) + weight)
    length += words.length * weight
  }
  return { weights, length }
}

/** Saturation of a repeated word, and how much a long text is held against it: descriptions are short, and long ones no worse. */
const K1 = 1.2
const B = 0.3
/** Words of a wish that an entry can be expected to repeat; a longer wish tells more than any description says. */
const EXPECTED_WORDS = 6
/** A pair of Chinese characters is about half of what a word tells. */
const PAIR = /^\p{Script=Han}{2}$/u

/**
 * Okapi BM25 of a wish against texts, each as a share 0..1 of the most that this wish can reach, so that one threshold serves wishes
 * and networks of any size: 1 when all of its words stand there, each weighted by how rare it is in `all`. A word that nobody uses
 * counts like a rare one. Own code, because libraries for it keep an index that would have to follow each manifest, and give no
 * such share.
 */
export function shares(wish: readonly string[], asked: readonly Bag[], all: readonly Bag[]): number[] {
  const words = [...new Set(wish)]
  const rarity = words.map((word) => {
    let holders = 0
    for (const { weights } of all) if (weights.has(word)) holders++
    return Math.log(1 + (all.length - holders + 0.5) / (Math.max(1, holders) + 0.5))
  })
  const units = words.reduce((sum, word) => sum + (PAIR.test(word) ? 0.5 : 1), 0)
  const most = rarity.reduce((sum, one) => sum + one, 0) * Math.min(1, EXPECTED_WORDS / (units || 1))
  const mean = all.reduce((sum, { length }) => sum + length, 0) / (all.length || 1) || 1
  const found = asked.map(({ weights, length }) => {
    const long = K1 * (1 - B + (B * length) / mean)
    return words.reduce((sum, word, i) => {
      const weight = weights.get(word)
      // As a share of what one mention in a text of mean length gives; more mentions fill what a long text lacks.
      return weight === undefined
        ? sum
        : sum + (rarity[i] as number) * Math.min(1, (weight * (1 + K1)) / (weight + long))
    }, 0)
  })
  const whole = found.reduce((max, one) => Math.max(max, one), most) || 1
  return found.map((sum) => sum / whole)
}
