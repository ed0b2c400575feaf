import { HermesError } from '@hermes-peer/protocol'
import type { Clock } from '../../clock.ts'
import type { Tunables } from '../../defaults.ts'
import type { Telemetry } from '../../telemetry/events.ts'
import { createEmbedder, type EmbedFunction } from './embedder.ts'
import { createLexical } from './lexical.ts'
import { createIntentMatcher, type IntentMatcher } from './matcher.ts'

export interface IntentsOptions {
  readonly embed: EmbedFunction | undefined
  readonly clock: Clock
  readonly tunables: Tunables
  readonly telemetry: Telemetry
}

/** The matcher of one peer: by words, or by an embedding function with the words behind it. */
export function createIntents({ embed, clock, tunables, telemetry }: IntentsOptions): IntentMatcher {
  return createIntentMatcher({
    lexical: createLexical,
    embedder: embed && createEmbedder({ embed, clock, tunables }),
    tunables,
    failed(cause) {
      const { code, message } = HermesError.from(cause)
      telemetry.emit('intent.fallback', { code, reason: message })
    },
  })
}
