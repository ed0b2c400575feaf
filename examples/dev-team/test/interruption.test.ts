import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { type BundledDemo, bundleForTests, createPlace, type Place } from './support/demo.ts'
import { createRepository, digest, type TestRepository } from './support/repository.ts'

let demo: BundledDemo
let place: Place
let input: TestRepository
let before: string
beforeAll(async () => {
  demo = await bundleForTests()
}, 60_000)
afterAll(() => demo.remove())
beforeEach(() => {
  place = createPlace(demo)
  input = createRepository(join(place.folder, 'input'))
  input.commit('good', { 'state.txt': 'good\n' })
  input.git('tag', 'v1')
  for (let i = 0; i < 4; i++) input.commit(`note ${i}`, { 'note.txt': `${i}\n` })
  input.commit('bad', { 'state.txt': 'bad\n' })
  before = digest(input.folder)
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

/** For what is between this program and its agents: they only wait for their end. */
const idleTeam = (): BundledDemo => demo.withPmThat('waits', { type: 'agent.ready', addresses: [] })

const nothingLeft = (): void => {
  expect(digest(input.folder)).toBe(before)
  expect(place.leftProcesses()).toEqual([])
  expect(place.leftFiles()).toEqual([])
  expect(existsSync(join(place.folder, 'out'))).toBe(false)
}

describe('an end in the middle', () => {
  it('Ctrl-C while tests run leaves no process, no worktree, no file', { timeout: 120_000 }, async () => {
    const run = place.start(ARGS)
    await run.seen('search.round')
    await run.seen('run.started', ({ commit }) => commit !== undefined)
    run.child.kill('SIGINT')
    const end = await run.end
    expect(end).toMatchObject({ code: 130, stderr: '' })
    expect(end.events.at(-1)).toMatchObject({ type: 'stopped', exitCode: 130 })
    nothingLeft()
  })

  it('a request to end while pm is being started again leaves nothing either', { timeout: 120_000 }, async () => {
    const run = place.start(['--kill-pm', ...ARGS], {}, idleTeam())
    await run.seen('agent.ready')
    place.kill('pm')
    await run.seen('agent.restarted')
    run.child.kill('SIGTERM')
    const end = await run.end
    expect(end).toMatchObject({ code: 143, stderr: '' })
    expect(end.events.at(-1)).toMatchObject({ type: 'stopped', exitCode: 143 })
    nothingLeft()
  })

  it('a closed terminal before the agents have met leaves nothing either', { timeout: 120_000 }, async () => {
    const run = place.start(ARGS)
    await run.seen('job.started')
    run.child.kill('SIGHUP')
    expect(await run.end).toMatchObject({ code: 129 })
    nothingLeft()
  })

  it('the crash of an agent that cannot be replaced is told in a sentence and leaves nothing', {
    timeout: 120_000,
  }, async () => {
    const run = place.start(ARGS, {}, idleTeam())
    await run.seen('agent.ready')
    place.kill('reviewer')
    const { code, events } = await run.end
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
    const run = place.start(ARGS)
    await run.seen('search.round')
    run.child.kill('SIGKILL')
    await run.end
    await vi.waitFor(nothingLeft, { timeout: 30_000, interval: 100 })
  })
})
