import { readFileSync } from 'node:fs'
import { manualClock } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import { DEFAULTS } from '../../src/defaults.ts'
import type { EmbedFunction } from '../../src/routing/intent/embedder.ts'
import { createIntents } from '../../src/routing/intent/intents.ts'
import type { IntentMatcher } from '../../src/routing/intent/matcher.ts'
import { createTelemetry } from '../../src/telemetry/telemetry.ts'
import { MANIFESTS, OFFERS, type Tally, tallies, WISHES, type Wish } from './intents/set.ts'

const signal = new AbortController().signal
const clock = manualClock()

const matcher = (embed?: EmbedFunction, heard: (reason: string) => void = () => undefined): IntentMatcher => {
  const telemetry = createTelemetry({ clock })
  telemetry.events.on('intent.fallback', ({ reason }) => heard(reason))
  return createIntents({ embed, clock, tunables: DEFAULTS, telemetry })
}

/** The capability that would be asked, as routing takes it from the matcher. */
const choosing = (intents: IntentMatcher) => async (wish: Wish) => {
  const entries = OFFERS.map(({ entry }) => entry)
  const meanings = await intents.match({ wish: wish.intent, asked: entries, all: entries }, signal)
  let best: number | undefined
  for (const [index, { near, least, refuses }] of meanings.entries()) {
    if (refuses !== undefined || near < least) continue
    if (best === undefined || near > (meanings[best]?.near ?? 0)) best = index
  }
  return best === undefined ? undefined : OFFERS[best]?.id
}

const KINDS = ['words', 'paraphrase', 'cross-language', 'nobody', 'negative'] as const
/** A line of the README's table of figures. */
const rowOf = (part: string, found: Record<Wish['kind'], Tally>) =>
  `| ${part} | ${KINDS.map((kind) => `${found[kind].right} of ${found[kind].wishes}`).join(' | ')} |`
const README = readFileSync(new URL('intents/README.md', import.meta.url), 'utf8').replaceAll(/ +/g, ' ')

const share = ({ right, wishes }: Tally) => right / wishes

describe('the labelled set', () => {
  it('is what its README says', () => {
    expect(MANIFESTS.length).toBe(34)
    expect(WISHES.length).toBe(120)
    expect(WISHES.filter(({ language }) => language === 'zh')).toHaveLength(60)
    expect(WISHES.filter(({ held_out }) => held_out)).toHaveLength(40)
    const ids = new Set(OFFERS.map(({ id }) => id))
    const named = WISHES.flatMap(({ want, never = [] }) => [...want, ...never])
    expect(named.filter((id) => !ids.has(id))).toEqual([])
  })

  it.each([
    ['tuned on', WISHES.filter(({ held_out }) => !held_out)],
    ['held out', WISHES.filter(({ held_out }) => held_out)],
  ])('by words alone, on the wishes that are %s', async (part, wishes) => {
    const found = await tallies(wishes, choosing(matcher()))
    expect(README).toContain(rowOf(part, found))
    expect(share(found.words)).toBeGreaterThanOrEqual(0.85)
    expect(share(found.nobody)).toBeGreaterThanOrEqual(0.8)
    expect(Object.values(found).flatMap(({ violated }) => violated)).toEqual([])
  })
})
