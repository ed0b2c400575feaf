import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type BundledDemo, bundleForTests, createPlace, type Place } from './support/demo.ts'
import { createRepository, digest, type TestRepository } from './support/repository.ts'

// A shell script with a dependency, in a folder with a space and letters of another script, below the top of its repository.
const script = (greeting: string, name = 'world'): string => `#!/bin/sh
. ./node_modules/words/words.sh
name=\${1:-${name}}
echo "${greeting} $name$mark"
`
const MENDED = `--- a/項目 a/greet.sh
+++ b/項目 a/greet.sh
@@ -4 +4 @@
-echo "Helo $name$mark"
+echo Hello "$name$mark"
`

const TEST = 'test "$(sh greet.sh you)" = "Hello you!"'

let demo: BundledDemo
let place: Place
let input: TestRepository
let model: Server
let culprit = ''
beforeAll(async () => {
  demo = await bundleForTests()
  place = createPlace(demo)
  input = createRepository(join(place.folder, 'mine'))
  const at = '項目 a/greet.sh'
  input.commit('start', { [at]: script('Hello'), '.gitignore': 'node_modules/\n', 'README.md': '0\n' })
  input.git('tag', 'v1')
  for (let i = 1; i <= 2; i++) input.commit(`note ${i}`, { 'README.md': `${i}\n` })
  input.git('checkout', '--quiet', '-b', 'side')
  input.commit('side', { 'side.txt': 'x\n' })
  input.git('checkout', '--quiet', 'main')
  input.commit('own', { 'own.txt': 'x\n' })
  input.git('merge', '--quiet', '--no-ff', '-m', 'merge side', 'side')
  culprit = input.commit('Greet others', { [at]: script('Helo', 'everybody'), 'README.md': 'everybody\n' })
  for (let i = 3; i <= 4; i++) input.commit(`note ${i}`, { 'README.md': `everybody ${i}\n` })
  mkdirSync(join(input.folder, '項目 a', 'node_modules', 'words'), { recursive: true })
  writeFileSync(join(input.folder, '項目 a', 'node_modules', 'words', 'words.sh'), "mark='!'\n")
  writeFileSync(join(input.folder, 'README.md'), 'not committed\n')
  model = createServer((request, response) => {
    request.resume().on('end', () => response.end(JSON.stringify({ choices: [{ message: { content: MENDED } }] })))
  })
  await new Promise<void>((resolve) => model.listen(0, '127.0.0.1', resolve))
}, 60_000)
afterAll(() => {
  model.close()
  place.remove()
  demo.remove()
})

describe('a repository of the user', () => {
  it('is repaired by the line of the culprit that matters, and never touched', { timeout: 120_000 }, async () => {
    const before = digest(input.folder)
    const { code, stdout, stderr } = await place.run([
      ...['--repo', 'mine/項目 a', '--good', 'v1', '--bad', 'main', '--out', 'result'],
      ...['--test', TEST],
    ])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(digest(input.folder)).toBe(before)
    expect(stdout).toContain('Which commit broke the test? 8 commits, 6 agents, no model.')
    expect(stdout).toContain('Uncommitted changes are ignored: only commits are tested.')
    expect(stdout).toContain('1 merge commit in the range: first parents are followed')
    expect(stdout).toContain(`culprit ${culprit.slice(0, 7)} "Greet others"`)
    expect(stdout).toContain('smallest reversal, 1 line of 項目 a/greet.sh')
    expect(stdout).toContain('types not checked: no tsconfig.json')
    expect(stdout).toMatch(
      /Wrote result\/fix\.patch; inputs untouched\n\d+ calls, \d+ succeeded, .*0 failed, \d+ failovers? · trace [0-9a-f]{32}\nUse it: git apply result\/fix\.patch\n$/,
    )
    const patch = readFileSync(join(place.folder, 'result', 'fix.patch'), 'utf8')
    expect(patch.match(/^[-+](?![-+]).*$/gm)).toEqual(['-echo "Helo $name$mark"', '+echo "Hello $name$mark"'])
    input.git('apply', '--check', join(place.folder, 'result', 'fix.patch'))
    expect(place.leftFiles()).toEqual([])
    expect(place.leftProcesses()).toEqual([])
  })

  it('is repaired by the patch of a model that testers and reviewer accept, with the reversal beside it', {
    timeout: 120_000,
  }, async () => {
    const { code, events, stderr } = await place.run(
      ['--json', '--repo', 'mine/項目 a', '--good', 'v1', '--test', TEST, '--out', 'by-model'],
      {
        OPENAI_BASE_URL: `http://127.0.0.1:${(model.address() as AddressInfo).port}/v1`,
        OPENAI_API_KEY: 'key-1',
        HERMES_MODEL: 'small-1',
      },
    )
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(events).toContainEqual(expect.objectContaining({ type: 'job.started', model: 'small-1' }))
    expect(events.filter(({ type }) => type === 'repair.proposal')).toEqual([
      expect.objectContaining({ accepted: true }),
    ])
    expect(readFileSync(join(place.folder, 'by-model', 'fix.patch'), 'utf8')).toContain('+echo Hello "$name$mark"')
    expect(readFileSync(join(place.folder, 'by-model', 'reversal.patch'), 'utf8')).toContain('+echo "Hello $name$mark"')
    // Neither the terminal nor a test command of the user is told the key.
    expect(JSON.stringify(events)).not.toContain('key-1')
  })
})
