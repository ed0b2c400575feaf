import { readFileSync } from 'node:fs'
import type { CapabilityEntry } from '@hermes-peer/protocol'
import { capabilityEntry } from '../support.ts'

/** One wish of the labelled set; see the README beside it. */
export interface Wish {
  readonly id: string
  readonly kind: 'words' | 'paraphrase' | 'cross-language' | 'nobody' | 'negative'
  readonly language: 'en' | 'zh'
  readonly intent: string
  readonly want: readonly string[]
  readonly never?: readonly string[]
  readonly held_out?: true
}

interface Listed {
  readonly agent: string
  readonly capabilities: readonly (Pick<CapabilityEntry, 'name' | 'description' | 'labels'> & {
    readonly negative_capabilities: readonly string[]
  })[]
}

const lines = <T>(name: string): T[] =>
  readFileSync(new URL(name, import.meta.url), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as T)

export const MANIFESTS = lines<Listed>('manifests.jsonl')
export const WISHES = lines<Wish>('queries.jsonl')

/** Every capability of the set, as manifests have it. */
export const OFFERS = MANIFESTS.flatMap(({ agent, capabilities }) =>
  capabilities.map(({ negative_capabilities: negatives, ...rest }) => ({
    id: `${agent}#${rest.name}`,
    entry: capabilityEntry({ ...rest, negatives }),
  })),
)

export interface Tally {
  readonly wishes: number
  /** Chosen as labelled: the one in `want`, or nobody where it is empty. */
  readonly right: number
  readonly nobody: number
  readonly violated: readonly string[]
}

/** Figures by kind; `choose` gives the id of the capability it would ask, undefined for nobody. */
export async function tallies(
  wishes: readonly Wish[],
  choose: (wish: Wish) => Promise<string | undefined>,
): Promise<Record<Wish['kind'], Tally>> {
  const found: Record<string, { wishes: number; right: number; nobody: number; violated: string[] }> = {}
  for (const wish of wishes) {
    found[wish.kind] ??= { wishes: 0, right: 0, nobody: 0, violated: [] }
    const tally = found[wish.kind] as (typeof found)[string]
    const chosen = await choose(wish)
    tally.wishes++
    if (chosen === undefined) tally.nobody++
    if (chosen === undefined ? wish.want.length === 0 : wish.want.includes(chosen)) tally.right++
    if (chosen !== undefined && wish.never?.includes(chosen)) tally.violated.push(`${wish.id}: ${chosen}`)
  }
  return found as Record<Wish['kind'], Tally>
}
