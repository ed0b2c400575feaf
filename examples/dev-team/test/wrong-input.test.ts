import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EXIT_CODES, type FailureKind } from '../src/failures.ts'
import { type BundledDemo, bundleForTests, createPlace, type Place } from './support/demo.ts'
import { createRepository } from './support/repository.ts'

let demo: BundledDemo
let place: Place
let good = ''
let bad = ''
beforeAll(async () => {
  demo = await bundleForTests()
  place = createPlace(demo)
  const input = createRepository(join(place.folder, 'input'))
  good = input.commit('good', { 'state.txt': 'good\n' })
  input.commit('between', { 'other.txt': '1\n' })
  bad = input.commit('bad', { 'state.txt': 'bad\n' })
  input.git('checkout', '--quiet', '--orphan', 'elsewhere')
  input.commit('elsewhere', {})
  input.git('checkout', '--quiet', 'main')
  mkdirSync(join(place.folder, 'plain'))
}, 60_000)
afterAll(() => {
  place.remove()
  demo.remove()
})

const TEST = 'grep good state.txt'
const own = (more: Record<string, string>): string[] =>
  Object.entries({ '--repo': 'input', '--good': good, '--test': TEST, ...more }).flat()

const nothingLeft = (): void => {
  expect(place.leftFiles()).toEqual([])
  expect(place.leftProcesses()).toEqual([])
}

describe('input that cannot work ends with a sentence, a hint and its own exit code', () => {
  const early: [string, FailureKind, () => string[], RegExp, RegExp, NodeJS.ProcessEnv?][] = [
    ['an unknown option', 'USAGE', () => ['--rpeo', '.'], /Unknown option '--rpeo'/, /--help/],
    ['an argument too many', 'USAGE', () => ['here'], /Too many arguments/, /--help/],
    [
      'no good revision',
      'USAGE',
      () => ['--repo', 'input', '--test', TEST],
      /--good must be given/,
      /--repo \. --good/,
    ],
    ['an empty test', 'USAGE', () => own({ '--test': ' ' }), /--test must be given/, /--test "npm test"/],
    ['a timeout that is no number', 'USAGE', () => own({ '--timeout': 'soon' }), /--timeout soon/, /1 to 3600/],
    ['no git', 'NO_GIT', () => own({}), /git cannot be started/, /Install git/, { PATH: '/nonexistent' }],
    ['no git, for the sample', 'NO_GIT', () => [], /git cannot be started/, /Install git/, { PATH: '/nonexistent' }],
    [
      'a folder that does not exist',
      'NOT_A_REPOSITORY',
      () => own({ '--repo': 'missing' }),
      /There is no folder .*missing/,
      /--repo/,
    ],
    [
      'a folder that is no repository',
      'NOT_A_REPOSITORY',
      () => own({ '--repo': 'plain' }),
      /plain is not in a git repository/,
      /--repo/,
    ],
    [
      'an unknown good revision',
      'UNKNOWN_REVISION',
      () => own({ '--good': 'v9.9' }),
      /--good v9\.9 is no commit/,
      /git log/,
    ],
    [
      'a revision like an option',
      'UNKNOWN_REVISION',
      () => own({ '--bad': '-rf' }),
      /--bad -rf is no commit/,
      /git log/,
    ],
    [
      'revisions that are swapped',
      'NOT_A_DESCENDANT',
      () => own({ '--good': bad, '--bad': good }),
      /does not descend/,
      /swap/,
    ],
    [
      'revisions without a common past',
      'NOT_A_DESCENDANT',
      () => own({ '--bad': 'elsewhere' }),
      /does not descend/,
      /merge-base/,
    ],
    ['the same revision twice', 'NOT_A_DESCENDANT', () => own({ '--bad': good }), /same commit/, /older --good/],
  ]
  it.concurrent.each(early)('%s', { timeout: 60_000 }, async (_, kind, args, message, hint, env) => {
    const end = await place.run(args(), env)
    expect({ code: end.code, stderr: end.stderr }).toEqual({
      code: EXIT_CODES[kind],
      stderr: expect.stringMatching(message),
    })
    expect(end.stderr).toMatch(hint)
    expect(end.stderr).not.toMatch(/^\s+at .*:\d+/m)
    expect(end.stdout).toBe('')
  })

  it('found by agents, in real runs of the test, as well', { timeout: 120_000 }, async () => {
    const end = await place.run(own({ '--test': 'no-such-command' }))
    expect({ code: end.code, stderr: end.stderr }).toEqual({
      code: EXIT_CODES.TEST_NOT_FOUND,
      stderr: expect.stringMatching(/could not be run at .{7}: .*no-such-command.*not found\n.*typing errors/),
    })
    expect(end.stderr).not.toMatch(/^\s+at .*:\d+/m)
    nothingLeft()
  })

  // What leads to each of these is shown in judging.test.ts and repair.test.ts; here is what becomes of it.
  it.each(['GOOD_FAILS', 'BAD_PASSES', 'FLAKY', 'NO_REPAIR'] as const)(
    'found by pm: %s',
    { timeout: 60_000 },
    async (kind) => {
      const reports = { type: 'job.failed', kind, message: 'Was nicht geht: 検査.', hint: 'What to do.' } as const
      const { code, stderr } = await place.run(own({}), {}, demo.withPmThat(kind, reports))
      expect({ code, stderr }).toEqual({
        code: EXIT_CODES[kind],
        stderr: `Was nicht geht: 検査.\nWhat to do.\nNothing was written; inputs untouched (exit code ${EXIT_CODES[kind]})\n`,
      })
      nothingLeft()
    },
  )

  it('says so as an event with --json', { timeout: 60_000 }, async () => {
    const { code, events, stderr } = await place.run(['--json', ...own({ '--good': 'v9.9' })])
    expect(code).toBe(EXIT_CODES.UNKNOWN_REVISION)
    expect(events.at(-1)).toMatchObject({ type: 'failed', kind: 'UNKNOWN_REVISION', exitCode: 5 })
    expect(stderr).toBe('')
  })

  it('has an exit code of its own for each kind, and help that lists them', { timeout: 60_000 }, async () => {
    expect(new Set(Object.values(EXIT_CODES)).size).toBe(Object.keys(EXIT_CODES).length)
    const { code, stdout } = await place.run(['--help'])
    expect(code).toBe(0)
    for (const number of Object.values(EXIT_CODES)) expect(stdout).toMatch(new RegExp(`^ +${number}  \\S`, 'm'))
  })
})
