import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { proposeByModel } from '../src/agents/propose.ts'
import type { TestRun } from '../src/agents/test-client.ts'
import { borrowObjects } from '../src/git/copy.ts'
import { copyCommits } from '../src/git/own-objects.ts'
import { openRepository } from '../src/git/repository.ts'
import { addWorktree } from '../src/git/worktree.ts'
import { extractPatch, modelEndpoint } from '../src/repair/proposal.ts'
import { reverseCommit } from '../src/repair/reversal.ts'
import { createRepository } from './support/repository.ts'

const PATCH = '--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-broken\n+mended\n'

let place: string
let prepared: Awaited<ReturnType<typeof prepare>>
let server: Server | undefined
beforeAll(async () => {
  place = mkdtempSync(join(tmpdir(), 'dev-team-test-'))
  prepared = await prepare()
})
afterEach(async () => {
  server?.closeAllConnections()
  server?.close()
  server = undefined
  expect(await prepared.worktree.git.text(['status', '--porcelain'])).toBe('')
})
afterAll(() => rmSync(place, { recursive: true, force: true }))

interface Asked {
  url: string | undefined
  authorization: string | undefined
  body: { model: string; messages: { content: string }[] }
}

/** A stand-in for a model: answers everything with one text. */
const standIn = async (content: string, { status = 200, raw }: { status?: number; raw?: string } = {}) => {
  const asked: Asked[] = []
  server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (part: string) => {
      body += part
    })
    request.on('end', () => {
      asked.push({ url: request.url, authorization: request.headers.authorization, body: JSON.parse(body) })
      response.writeHead(status, { 'content-type': 'application/json', location: '/elsewhere' })
      response.end(raw ?? JSON.stringify({ choices: [{ message: { role: 'assistant', content } }] }))
    })
  })
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve))
  return { asked, baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/` }
}

/** A culprit and its reversal; every proposal leaves the worktree clean, so that one does for all. */
const prepare = async () => {
  const input = createRepository(join(place, 'input'))
  input.commit('good', { 'a.txt': 'fine\n', 'test/a.test.js': '1\n' })
  const culprit = input.commit('culprit', { 'a.txt': 'broken\n', 'test/a.test.js': '2\n' })
  await borrowObjects(await openRepository(input.folder), join(place, 'borrowed.git'))
  await copyCommits({ repository: join(place, 'borrowed.git'), folder: join(place, 'own.git'), commits: [culprit] })
  const worktree = await addWorktree({ repository: join(place, 'own.git'), path: join(place, 'work'), commit: culprit })
  const reversal = await reverseCommit(worktree, { culprit, bad: culprit, merge: false })
  return { worktree, culprit, bad: culprit, reversal }
}

const propose = (baseUrl: string, verdict: TestRun['verdict'] = 'pass', accepted = true) =>
  proposeByModel({
    endpoint: { baseUrl, apiKey: 'key-1', model: 'small-1' },
    ...prepared,
    client: {
      run: async ({ patch }) => ({
        verdict: patch ? verdict : 'fail',
        summary: '1/2 tests',
        excerpt: 'expected fine',
        durationMs: 1,
      }),
    },
    accept: async () => accepted,
    signal: new AbortController().signal,
  })

describe('a patch proposed by a model', () => {
  it('counts when testers and reviewer accept it; the model is told culprit, failure and the files without tests', async () => {
    const { asked, baseUrl } = await standIn(`Here it is:\n\`\`\`diff\n${PATCH}\`\`\`\n`)
    const { patch, note } = await propose(baseUrl)
    expect(note).toBe('accepted by testers and reviewer')
    expect(patch?.toString()).toContain('+mended')
    expect(asked).toHaveLength(1)
    expect(asked[0]).toMatchObject({
      url: '/v1/chat/completions',
      authorization: 'Bearer key-1',
      body: { model: 'small-1' },
    })
    const told = asked[0]?.body.messages.at(-1)?.content ?? ''
    expect(told).toContain('+broken')
    expect(told).toContain('expected fine')
    expect(told).toContain('Present text of a.txt')
    expect(told).not.toContain('Present text of test/a.test.js')
  })

  it('does not count when the test fails with it', async () => {
    const { baseUrl } = await standIn(PATCH)
    expect(await propose(baseUrl, 'fail')).toMatchObject({
      patch: undefined,
      note: 'the test fails with it: 1/2 tests',
    })
  })

  it('does not count when the reviewer refuses it', async () => {
    const { baseUrl } = await standIn(PATCH)
    expect(await propose(baseUrl, 'pass', false)).toMatchObject({ patch: undefined, note: 'the reviewer refuses it' })
  })

  it('does not count when it changes a test, though the culprit changed it too', async () => {
    const { baseUrl } = await standIn('--- a/test/a.test.js\n+++ b/test/a.test.js\n@@ -1 +1 @@\n-2\n+1\n')
    expect((await propose(baseUrl)).note).toContain('it changes test/a.test.js')
  })

  it.each([
    ['answers with prose', 'I cannot help with that.', {}, 'its answer holds no patch'],
    ['fails', '', { status: 500 }, "the model's endpoint answered 500"],
    ['redirects', '', { status: 302 }, 'fetch failed'],
    ['answers with something else than JSON', '', { raw: '<html>' }, ''],
    ['answers without end', '', { raw: 'x'.repeat(300 * 1024) }, "the model's answer is too long"],
  ])('is none, and the repair goes on, when the endpoint %s', async (_, content, how, note) => {
    const { baseUrl } = await standIn(content, how)
    const proposed = await propose(baseUrl)
    expect(proposed.patch).toBeUndefined()
    expect(proposed.note).toContain(note)
  })

  it('is asked for only when all three variables are set', () => {
    const env = { OPENAI_BASE_URL: 'http://127.0.0.1:1/v1', OPENAI_API_KEY: 'k', HERMES_MODEL: 'm' }
    expect(modelEndpoint(env)).toEqual({ baseUrl: env.OPENAI_BASE_URL, apiKey: 'k', model: 'm' })
    for (const name of Object.keys(env)) expect(modelEndpoint({ ...env, [name]: '' })).toBeUndefined()
  })

  it('is found with or without a fence around it', () => {
    expect(extractPatch(PATCH)).toBe(PATCH)
    expect(extractPatch(`text\n\n\`\`\`\n${PATCH}\`\`\`\nmore`)).toBe(PATCH)
    expect(extractPatch('```js\nlet a = 1\n```')).toBeUndefined()
  })
})
