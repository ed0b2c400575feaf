import { HermesError } from '@hermes-peer/protocol'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../../clock.ts'
import type { Tunables } from '../../defaults.ts'
import { onAbort, withSignal } from '../../signals.ts'

/**
 * Turns texts into vectors whose cosine tells how near they are in meaning: one for each text, in their order, all of one length.
 * At most 64 texts at a time, each up to 2,048 characters, written by whoever published a manifest: data, never instructions.
 */
export type EmbedFunction = (
  texts: string[],
  options: { signal: AbortSignal },
) => Promise<readonly (readonly number[] | Float32Array)[]>

export interface Embedded {
  readonly text: string
  /** What it does not do. */
  readonly negatives: readonly string[]
}

/** Compares a wish with texts by the vectors of an embedding function. */
export interface Embedder {
  /** Rejects with `EMBEDDING_FAILED`, `TIMEOUT`, or the reason of the signal. */
  compare(
    wish: string,
    entries: readonly Embedded[],
    signal: AbortSignal,
  ): Promise<readonly { readonly near: number; readonly refuses: string | undefined }[]>
}

/** Texts asked for at once. */
const BATCH = 64
/** Characters of a text that are sent. */
const MOST_CHARACTERS = 2048

export function createEmbedder(options: { embed: EmbedFunction; clock: Clock; tunables: Tunables }): Embedder {
  const { embed, clock, tunables } = options
  const vectors = new LRUCache<string, Float32Array>({
    maxSize: tunables.intentVectors,
    sizeCalculation: () => 1,
  })

  const ask = async (texts: string[], signal: AbortSignal): Promise<Float32Array[]> => {
    const stop = new AbortController()
    const timer = clock.after(tunables.embedTimeoutMs, () =>
      stop.abort(
        new HermesError('TIMEOUT', {
          message: `the embedding function gave no answer within ${tunables.embedTimeoutMs} ms`,
          source: 'llm',
        }),
      ),
    )
    const release = onAbort(signal, () => stop.abort(signal.reason))
    try {
      const asked = Promise.resolve(embed(texts, { signal: stop.signal }))
      return readVectors(await withSignal(asked, stop.signal), texts.length)
    } catch (cause) {
      if (stop.signal.aborted) throw HermesError.from(stop.signal.reason)
      throw HermesError.from(cause, 'EMBEDDING_FAILED')
    } finally {
      clock.clear(timer)
      release()
    }
  }

  /** Vectors of all texts, asked for where they are not known. */
  const look = async (texts: ReadonlySet<string>, signal: AbortSignal): Promise<ReadonlyMap<string, Float32Array>> => {
    const found = new Map<string, Float32Array>()
    const missing: string[] = []
    for (const text of texts) {
      const known = vectors.get(text)
      if (known) found.set(text, known)
      else missing.push(text)
    }
    for (let at = 0; at < missing.length; at += BATCH) {
      const part = missing.slice(at, at + BATCH)
      const made = await ask(part, signal)
      for (const [index, text] of part.entries()) {
        vectors.set(text, made[index] as Float32Array)
        found.set(text, made[index] as Float32Array)
      }
    }
    const lengths = new Set([...found.values()].map(({ length }) => length))
    if (lengths.size > 1) throw failed(`gave vectors of ${[...lengths].join(' and ')} numbers`)
    return found
  }

  return {
    async compare(wish, entries, signal) {
      const cut = (text: string) => text.slice(0, MOST_CHARACTERS)
      const texts = new Set([wish, ...entries.flatMap(({ text, negatives }) => [text, ...negatives])].map(cut))
      const found = await look(texts, signal)
      const of = (text: string) => found.get(cut(text)) as Float32Array
      return entries.map(({ text, negatives }) => {
        const near = cosine(of(wish), of(text))
        // Nearer to what it does not do than to what it does.
        const refuses = negatives.find((negative) => cosine(of(wish), of(negative)) > near)
        return { near: Math.max(0, near), refuses }
      })
    },
  }
}

function failed(why: string): HermesError {
  return new HermesError('EMBEDDING_FAILED', { message: `the embedding function ${why}` })
}

/** Unit vectors, so that a product of two is their cosine. */
function readVectors(answer: unknown, count: number): Float32Array[] {
  if (!Array.isArray(answer) || answer.length !== count) {
    throw failed(`gave ${Array.isArray(answer) ? answer.length : 'no list of'} vectors for ${count} texts`)
  }
  return answer.map((one: unknown) => {
    if (!(Array.isArray(one) || one instanceof Float32Array) || one.length === 0 || one.length > 16_384)
      throw failed('gave a vector that is no list of 1 to 16,384 numbers')
    const vector = Float32Array.from(one as number[])
    const size = Math.hypot(...vector)
    if (!Number.isFinite(size) || size === 0) throw failed('gave a vector that is not finite, or zero')
    return vector.map((value) => value / size)
  })
}

function cosine(one: Float32Array, other: Float32Array): number {
  let sum = 0
  for (let i = 0; i < one.length; i++) sum += (one[i] as number) * (other[i] as number)
  return sum
}
