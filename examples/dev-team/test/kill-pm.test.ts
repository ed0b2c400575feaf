import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type BundledDemo, bundleForTests, createPlace, type DemoEnd, type Place } from './support/demo.ts'
import { createRepository, digest } from './support/repository.ts'

const COMMITS = 13
/** The first round of three testers is 3, 6 and 9. */
const CULPRIT = 8

let demo: BundledDemo
let place: Place
let end: DemoEnd
let digests: { before: string; after: string }
const commits: string[] = []
/** The tester that was told to end. */
let drained = ''

beforeAll(async () => {
  demo = await bundleForTests()
  place = createPlace(demo)
  const input = createRepository(join(place.folder, 'input'))
  for (let i = 0; i < COMMITS; i++) {
    const broken = i >= CULPRIT
    commits.push(
      input.commit(`commit ${i}`, {
        'number.txt': `${i}\n`,
        'a.txt': `${broken ? 'broken' : 'fine'}\n${broken ? 'other' : 'one'}\n`,
      }),
    )
  }
  const before = digest(input.folder)
  const gate = (name: string): string => join(place.folder, name)
  const until = (name: string): string => `while test ! -e '${gate(name)}'; do sleep 0.05; done`
  // Commit 6 holds the first round up; the culprit its second run, the one that makes sure of it.
  const test = `echo "läuft 検査"
    case "$(cat number.txt)" in
      6) ${until('restarted')};;
      ${CULPRIT}) mkdir '${gate('searched')}' 2>&1 || ${until('drained')};;
    esac
    ! grep -q broken a.txt`
  const run = place.start(['--json', '--kill-pm', '--repo', 'input', '--good', commits[0] as string, '--test', test])

  await run.seen('search.verdict')
  place.kill('pm')
  await run.seen('agent.restarted')
  writeFileSync(gate('restarted'), '')
  // What a run writes is known while it goes on: this one waits for what is done about it.
  const { by } = await run.seen('run.output', ({ commit }) => commit === commits[CULPRIT])
  drained = by as string
  place.kill(drained, 'SIGTERM')
  await run.seen('agent.draining')
  writeFileSync(gate('drained'), '')
  end = await run.end
  digests = { before, after: digest(input.folder) }
}, 180_000)
afterAll(() => {
  place.remove()
  demo.remove()
})

const all = (type: string) => end.events.filter((event) => event.type === type)
const indexOf = (found: (event: Record<string, unknown>) => boolean): number => end.events.findIndex(found)

describe('a job whose pm is killed in the search, by somebody, and in the repair, by --kill-pm', () => {
  it('ends well, and leaves no process and no file but the patch', () => {
    expect({ code: end.code, stderr: end.stderr }).toEqual({ code: 0, stderr: '' })
    expect(place.leftFiles()).toEqual([])
    expect(place.leftProcesses()).toEqual([])
    expect(digests.after).toBe(digests.before)
    const patch = readFileSync(join(place.folder, 'out', 'fix.patch'), 'utf8')
    expect(patch.match(/^[-+](?![-+]).*$/gm)).toEqual(['-broken'])
  })

  it('is gone on with by a further life of pm each time, which says so', () => {
    expect(all('agent.restarted').map(({ agent, life }) => [agent, life])).toEqual([
      ['pm', 2],
      ['pm', 3],
    ])
    expect(all('agent.killed')).toMatchObject([{ agent: 'pm' }])
    const [inSearch, inRepair, ...more] = all('job.resumed')
    expect(more).toEqual([])
    // Both ends, the bad one twice, and at least one verdict of the search.
    expect(inSearch?.runs).toBeGreaterThanOrEqual(4)
    expect(inSearch).not.toHaveProperty('culprit')
    expect(inRepair).toMatchObject({
      culprit: commits[CULPRIT],
      task: { agent: 'coder', id: all('repair.submitted')[0]?.taskId },
    })
    expect(all('done')[0]?.earlierTraceIds).toHaveLength(2)
  })

  it('does no work twice that it knew to be done', () => {
    for (const once of ['team.found', 'search.confirmed', 'search.culprit', 'repair.submitted', 'repair.confirmed']) {
      expect({ once, found: all(once).length }).toEqual({ once, found: 1 })
    }
    expect(all('repair.reduced')).toHaveLength(1)
    const verdicts = all('search.verdict').map(({ commit }) => commit)
    expect(new Set(verdicts).size).toBe(verdicts.length)
    const restarted = indexOf(({ type }) => type === 'agent.restarted')
    const known = end.events
      .slice(0, restarted)
      .flatMap(({ type, commit }) => (type === 'search.verdict' ? [commit] : []))
    expect(known.length).toBeGreaterThanOrEqual(1)
    const asked = end.events.slice(restarted).flatMap(({ type, commits: of }) => (type === 'search.round' ? of : []))
    expect(known.filter((commit) => (asked as unknown[]).includes(commit))).toEqual([])
  })

  it('goes on at the coder while pm is away, and its news reach the next life', () => {
    const killed = indexOf(({ type }) => type === 'agent.killed')
    expect(
      end.events.slice(killed).filter(({ type, agent }) => type === 'run.started' && agent !== 'pm').length,
    ).toBeGreaterThan(0)
    expect(all('repair.progress').map(({ note }) => note)).toEqual([
      'taking all of it back makes the test pass',
      expect.stringMatching(/^1 line is enough, after \d+ trials$/),
    ])
  })

  it('ends with a balance in which what the kills cut off is told', () => {
    const { calls, succeeded, failed, cutOff } = all('done')[0] as Record<string, number>
    expect(calls).toBe((succeeded as number) + (failed as number) + (cutOff as number))
    expect(cutOff).toBeGreaterThanOrEqual(1)
  })
})

describe('F-44 a tester that is told to end by SIGTERM', () => {
  it('ends the run that it was in the middle of, its stream included, takes no other, and goes with exit code 0', () => {
    const told = indexOf(({ type, agent }) => type === 'agent.draining' && agent === drained)
    const later = end.events.slice(told)
    expect(later.filter(({ type, agent }) => type === 'run.ended' && agent === drained)).toMatchObject([
      { commit: commits[CULPRIT], passed: false },
    ])
    expect(later.filter(({ type, agent }) => type === 'run.started' && agent === drained)).toEqual([])
    expect(all('agent.lost')).toMatchObject([{ agent: drained, how: 'exit code 0' }])
    expect(all('call.failed')).toEqual([])
  })
})
