import { HermesError } from '@hermes-peer/protocol'
import { type Clock, systemClock } from '../../clock.ts'
import { onAbort } from '../../signals.ts'
import type { EmbedFunction } from './embedder.ts'

export interface OpenAiEmbeddingsOptions {
  /** Up to and without `/embeddings`, such as `http://127.0.0.1:11434/v1`. */
  baseUrl: string
  model: string
  /** Sent as a bearer token, and told to nobody else; left out for servers that want none. */
  apiKey?: string
  /** For one request, ms. Default 5,000. */
  timeoutMs?: number
  /** What makes the requests. Default: that of the platform. */
  fetch?: typeof fetch
  clock?: Clock
}

/** 64 vectors of 3,072 numbers as text, four times. */
const MOST_BYTES = 16 * 1024 * 1024

/**
 * An embedding function over any server that speaks OpenAI's `POST /embeddings` (Ollama, vLLM, llama.cpp and others do). Redirects are
 * not followed, so that the token stays with the host that was named. Throws `INVALID_OPTION` that names the field; the function
 * rejects with `EMBEDDING_FAILED` or `TIMEOUT`.
 */
export function openAiEmbeddings(options: OpenAiEmbeddingsOptions): EmbedFunction {
  const { url, model, apiKey, timeoutMs, request, clock } = read(options)
  return async (texts, { signal }) => {
    const stop = new AbortController()
    const late = new HermesError('TIMEOUT', {
      message: `${url.host} gave no embeddings within ${timeoutMs} ms`,
      source: 'llm',
    })
    const timer = clock.after(timeoutMs, () => stop.abort(late))
    const release = onAbort(signal, () => stop.abort(signal.reason))
    try {
      const response = await request(url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
        },
        body: JSON.stringify({ model, input: texts, encoding_format: 'float' }),
        redirect: 'error',
        signal: stop.signal,
      })
      if (!response.ok) {
        await response.body?.cancel()
        throw failed(url, `answered with status ${response.status}`)
      }
      return vectorsOf(JSON.parse(await bounded(response, url)), texts.length, url)
    } catch (cause) {
      if (stop.signal.aborted) throw HermesError.from(stop.signal.reason)
      if (cause instanceof HermesError) throw cause
      throw failed(url, cause instanceof SyntaxError ? 'answered with what is no JSON' : 'could not be asked', cause)
    } finally {
      clock.clear(timer)
      release()
    }
  }
}

/** The host alone is told: a URL may hold what must not be in a log. */
function failed(url: URL, why: string, cause?: unknown): HermesError {
  return new HermesError('EMBEDDING_FAILED', { message: `${url.host} ${why}`, cause })
}

async function bounded(response: Response, url: URL): Promise<string> {
  const decoder = new TextDecoder()
  let [text, bytes] = ['', 0]
  if (!response.body) return text
  for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) {
    bytes += part.length
    // Leaving the loop cancels the rest.
    if (bytes > MOST_BYTES) throw failed(url, `answered with more than ${MOST_BYTES} bytes`)
    text += decoder.decode(part, { stream: true })
  }
  return text + decoder.decode()
}

/** `{"data": [{"index": 0, "embedding": […]}]}`, in any order. */
function vectorsOf(answer: unknown, count: number, url: URL): number[][] {
  const list = (answer as { data?: unknown } | null)?.data
  if (!Array.isArray(list) || list.length !== count) throw failed(url, `gave no list of ${count} embeddings`)
  const vectors: number[][] = []
  for (const [at, one] of list.entries()) {
    const { index = at, embedding } = (one ?? {}) as { index?: unknown; embedding?: unknown }
    const sound = Number.isInteger(index) && (index as number) >= 0 && (index as number) < count
    const numbers = Array.isArray(embedding) && embedding.every((value) => typeof value === 'number')
    if (!sound || !numbers || vectors[index as number])
      throw failed(url, `gave an embedding that cannot be read, number ${at}`)
    vectors[index as number] = embedding as number[]
  }
  return vectors
}

function read(options: OpenAiEmbeddingsOptions) {
  const refuse = (field: string, why: string): never => {
    throw new HermesError('INVALID_OPTION', { message: `${field} ${why}`, details: { field } })
  }
  if (typeof options !== 'object' || options === null) refuse('options', 'must be an object with baseUrl and model')
  const { baseUrl, model, apiKey, timeoutMs = 5000, fetch: request = fetch, clock = systemClock() } = options
  const base =
    typeof baseUrl === 'string' && URL.canParse(baseUrl) ? new URL(baseUrl) : refuse('baseUrl', 'must be a URL')
  if (!/^https?:$/.test(base.protocol)) refuse('baseUrl', 'must begin with http:// or https://')
  if (base.username !== '' || base.password !== '') refuse('baseUrl', 'must hold no password: give apiKey')
  if (typeof model !== 'string' || model === '') refuse('model', 'must be the name of a model')
  if (apiKey !== undefined && !(typeof apiKey === 'string' && /^[\x21-\x7e]+$/.test(apiKey)))
    refuse('apiKey', 'must be a text of printable ASCII characters')
  if (!(typeof timeoutMs === 'number' && timeoutMs > 0 && timeoutMs <= 600_000))
    refuse('timeoutMs', 'must be a number of milliseconds up to 10 minutes')
  const url = new URL(base)
  url.pathname = `${base.pathname.replace(/\/+$/, '')}/embeddings`
  return { url, model, apiKey, timeoutMs, request, clock }
}
