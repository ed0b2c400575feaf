import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createPlace, type Place } from './support/demo.ts'
import { createRepository, digest, type TestRepository } from './support/repository.ts'

let place: Place
let input: TestRepository
beforeEach(() => {
  place = createPlace()
  input = createRepository(join(place.folder, 'input'))
  input.commit('good', { 'state.txt': 'good\n' })
  input.git('tag', 'v1')
  for (let i = 0; i < 8; i++) input.commit(`note ${i}`, { 'note.txt': `${i}\n` })
  input.commit('bad', { 'state.txt': 'bad\n' })
})
afterEach(() => place.remove())

/** Fast at both ends, without end between them: the search is in the middle when it is interrupted. */
const ARGS = [
  '--json',
  '--repo',
  'input',
  '--good',
  'v1',
  '--test',
  'grep -q good state.txt && test ! -e note.txt || { grep -q bad state.txt && exit 1; sleep 600 & wait; }',
]

const nothingLeft = (): void => {
  expect(place.leftProcesses()).toEqual([])
  expect(place.leftFiles()).toEqual([])
  expect(existsSync(join(place.folder, 'out'))).toBe(false)
}

describe('an end in the middle', () => {
  it.each([
    ['Ctrl-C', 'SIGINT', 130],
    ['a request to end', 'SIGTERM', 143],
  ] as const)(
    '%s while tests run leaves no process, no worktree, no file',
    { timeout: 120_000 },
    async (_, signal, code) => {
      const before = digest(input.folder)
      const demo = place.start(ARGS)
      await demo.seen('search.round')
      const { commit } = await demo.seen('run.started', (event) => event.patched === false && event.agent !== undefined)
      expect(commit).toMatch(/^[0-9a-f]{40}$/)
      demo.child.kill(signal)
      const end = await demo.end
      expect(end).toMatchObject({ code, stderr: '' })
      expect(end.events.at(-1)).toMatchObject({ type: 'stopped', exitCode: code })
      nothingLeft()
      expect(digest(input.folder)).toBe(before)
    },
  )

  it('a closed terminal before the agents have met leaves nothing either', { timeout: 120_000 }, async () => {
    const demo = place.start(ARGS)
    await demo.seen('job.started')
    demo.child.kill('SIGHUP')
    expect(await demo.end).toMatchObject({ code: 129 })
    nothingLeft()
  })

  it('the crash of an agent that cannot be replaced is told in a sentence and leaves nothing', {
    timeout: 120_000,
  }, async () => {
    const demo = place.start(ARGS)
    await demo.seen('search.round')
    const [reviewer] = place.leftProcesses().filter((line) => line.includes('reviewer.json'))
    process.kill(Number(reviewer?.split(' ')[0]), 'SIGKILL')
    const { code, events } = await demo.end
    expect(code).toBe(1)
    expect(events.at(-1)).toMatchObject({
      type: 'failed',
      kind: 'OTHER',
      message: 'reviewer ended unexpectedly (SIGKILL)',
    })
    nothingLeft()
  })

  it('kill -9 of the command itself leaves nothing, as the agents notice that they are alone', {
    timeout: 120_000,
  }, async () => {
    const demo = place.start(ARGS)
    await demo.seen('search.round')
    demo.child.kill('SIGKILL')
    await demo.end
    await vi.waitFor(nothingLeft, { timeout: 30_000, interval: 100 })
  })
})
