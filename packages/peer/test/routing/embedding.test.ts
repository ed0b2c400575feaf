import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { manualClock } from '@hermes-peer/testkit'
import { afterEach, describe, expect, it } from 'vitest'
import { DEFAULTS } from '../../src/defaults.ts'
import { createEmbedder, type EmbedFunction } from '../../src/routing/intent/embedder.ts'
import { openAiEmbeddings } from '../../src/routing/intent/openai-embeddings.ts'
import { named, routing } from './scene.ts'
import { entry } from './support.ts'

/** A stand-in for a model: each concept is a direction, whatever the language. */
const CONCEPTS = [/weather|umbrella|rain|天气/i, /log|日志/i, /ticket|工单/i, /money|revenue|营收/i]
const concepts: EmbedFunction = async (texts) =>
  texts.map((text) => [...CONCEPTS.map((concept) => (concept.test(text) ? 1 : 0)), 0.1])

const offers = () => [
  entry('weather-desk', { offers: [{ name: 'forecast', description: 'Weather of a city.' }] }),
  entry('log-insight', { offers: [{ name: 'log_scan', description: 'Finds anomalies in log lines.' }] }),
  entry('erp', { offers: [{ name: 'report', description: 'Revenue by month.', negatives: ['tickets'] }] }),
]
const by = (intent: string) => ({ capability: undefined as never, intent })

describe('with an embedding function', () => {
  it.each([
    ['do I need an umbrella', 'weather-desk'],
    ['看看日志', 'log-insight'],
    ['上季度的营收', 'erp'],
  ])('%s is for %s, though they share no word', async (intent, right) => {
    expect(named(await routing(offers(), 1, concepts).choose(by(intent)))).toEqual([right])
  })

  it('nobody is named where nothing is near, and what is refused in words stays refused', async () => {
    const scene = routing(offers(), 1, concepts)
    expect((await scene.refusal(by('play chess'))).code).toBe('NO_CANDIDATE')
    const erp = (await scene.rank(by('revenue of tickets'))).find(({ agentId }) => agentId === 'erp')
    expect(erp?.reasons).toEqual(['says that it does not do this: "tickets"'])
    expect(erp?.usable).toBe(false)
  })

  it.each([
    ['throws', async () => Promise.reject(new Error('down'))],
    ['gives too few', async () => []],
    ['gives no numbers', async (texts: string[]) => texts.map(() => ['x'] as never)],
    ['gives zeros', async (texts: string[]) => texts.map(() => [0, 0])],
    ['gives several lengths', async (texts: string[]) => texts.map((_, i) => Array(1 + (i % 2)).fill(1))],
  ] satisfies [string, EmbedFunction][])('the words decide when it %s', async (_, embed) => {
    const scene = routing(offers(), 1, embed)
    expect(named(await scene.choose(by('anomalies in the log')))).toEqual(['log-insight'])
    expect(scene.fallbacks).toEqual(['EMBEDDING_FAILED'])
  })

  it('asks for each text once, and not for longer than its time', async () => {
    const clock = manualClock()
    const asked: string[] = []
    const embedder = createEmbedder({
      embed: (texts, how) => {
        asked.push(...texts)
        return concepts(texts, how)
      },
      clock,
      tunables: DEFAULTS,
    })
    const { signal } = new AbortController()
    const entries = [{ text: 'weather', negatives: ['tickets'] }]
    await embedder.compare('rain', entries, signal)
    await embedder.compare('rain', entries, signal)
    expect(asked.sort()).toEqual(['rain', 'tickets', 'weather'])
    const silent = createEmbedder({ embed: () => new Promise(() => undefined), clock, tunables: DEFAULTS })
    const waiting = silent.compare('rain', entries, signal).catch((error: unknown) => error)
    await clock.timeline.advance('5s')
    expect(await waiting).toMatchObject({ code: 'TIMEOUT' })
  })
})

describe('openAiEmbeddings', () => {
  let server: Server | undefined
  afterEach(() => {
    server?.closeAllConnections()
    server?.close()
  })
  const serve = async (listener: RequestListener): Promise<string> => {
    server = createServer(listener)
    await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/`
  }
  const { signal } = new AbortController()
  const ask = (baseUrl: string, more: object = {}) =>
    openAiEmbeddings({ baseUrl, model: 'm', apiKey: 'sk-secret', ...more })(['a', 'b'], { signal })

  it('asks POST /embeddings with the token, and takes the vectors in any order', async () => {
    const seen: unknown[] = []
    const base = await serve(async (request, response) => {
      let body = ''
      for await (const part of request) body += part
      seen.push(request.method, request.url, request.headers.authorization, JSON.parse(body))
      const data = [
        { index: 1, embedding: [0, 1] },
        { index: 0, embedding: [1, 0] },
      ]
      response.end(JSON.stringify({ data }))
    })
    expect(await ask(base)).toEqual([
      [1, 0],
      [0, 1],
    ])
    expect(seen).toEqual([
      'POST',
      '/v1/embeddings',
      'Bearer sk-secret',
      { model: 'm', input: ['a', 'b'], encoding_format: 'float' },
    ])
  })

  it.each([
    ['a status', 'status 401', (_, response) => response.writeHead(401).end('sk-secret')],
    ['no JSON', 'no JSON', (_, response) => response.end('<html>')],
    ['too few', 'list of 2', (_, response) => response.end('{"data":[]}')],
    [
      'the same twice',
      'cannot be read',
      (_, response) => response.end('{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}'),
    ],
    ['no numbers', 'cannot be read', (_, response) => response.end('{"data":[{"embedding":"x"},{"embedding":[1]}]}')],
    ['a redirect', 'could not be asked', (_, response) => response.writeHead(307, { location: '/elsewhere' }).end()],
  ] satisfies [string, string, RequestListener][])(
    '%s is EMBEDDING_FAILED, without the token',
    async (_, why, listener) => {
      const base = await serve(listener)
      const error = await ask(base).catch((caught: unknown) => caught)
      expect(error).toMatchObject({ code: 'EMBEDDING_FAILED', message: expect.stringContaining(why) })
      expect(String((error as Error).message)).not.toContain('sk-secret')
    },
  )

  it('ends by its time', async () => {
    const clock = manualClock()
    const arrived: (() => void)[] = []
    const asked = new Promise<void>((resolve) => arrived.push(resolve))
    const base = await serve(() => arrived[0]?.())
    const answer = ask(base, { clock, timeoutMs: 700 }).catch((caught: unknown) => caught)
    await asked
    await clock.timeline.advance(700)
    expect(await answer).toMatchObject({ code: 'TIMEOUT' })
  })

  it.each([
    ['baseUrl', { baseUrl: 'ollama' }],
    ['baseUrl', { baseUrl: 'file:///etc' }],
    ['baseUrl', { baseUrl: 'http://user:pw@127.0.0.1' }],
    ['model', { model: '' }],
    ['apiKey', { apiKey: 'a\nb' }],
    ['timeoutMs', { timeoutMs: -1 }],
  ])('refuses a wrong %s: %j', (field, more) => {
    const make = () => openAiEmbeddings({ baseUrl: 'http://127.0.0.1/v1', model: 'm', ...more })
    expect(make).toThrow(expect.objectContaining({ code: 'INVALID_OPTION', details: { field } }))
  })
})
