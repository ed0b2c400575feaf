import type { TestClient } from '../agents/test-client.ts'
import type { AgentEvent } from '../events.ts'
import { failure } from '../failures.ts'
import type { Git } from '../git/git.ts'
import { parentOf } from '../git/repository.ts'
import { printable } from '../process/printable.ts'
import { confirmCulprit, confirmEnds, short } from '../search/confirm.ts'
import { roundsNeeded, type SearchEvent, searchCulprit, type Verdict } from '../search/kary.ts'
import { notedRuns } from './noted-runs.ts'
import type { Notes } from './notes.ts'

/**
 * Finds the commit that broke the test, and makes sure of it; goes on from what an earlier life has noted. Fails with the kinds
 * of `confirmEnds` and `confirmCulprit`.
 */
export async function findCulprit({
  git,
  good,
  bad,
  commits,
  client,
  notes,
  report,
  signal,
}: {
  git: Git
  good: string
  bad: string
  commits: readonly string[]
  client: TestClient
  notes: Notes
  report: (event: AgentEvent) => void
  signal: AbortSignal
}): Promise<string> {
  const found = notes.last('culprit')
  if (found !== undefined) return found.commit
  const watch = (commit: string, trial: AbortSignal | undefined) =>
    client.watch(commit, trial, (piece) => report({ type: 'run.output', ...piece }))
  const runEnd = notedRuns(notes, 'ends', async (commit, trial) => {
    const done = await watch(commit, trial)
    if (done.verdict === 'skip') throw cannotTest(commit, done.reason, done.summary)
    return done
  })
  const { summary } = await confirmEnds({ good, bad }, runEnd, signal)
  const rounds = notes.all('round').length
  if (rounds === 0) report({ type: 'search.confirmed', summary })
  const verdicts = new Map<string, Verdict>(
    notes.all('run').flatMap((run) => (run.stage === 'search' ? [[run.commit, run.verdict] as const] : [])),
  )
  const test = notedRuns(notes, 'search', (commit, trial) => client.run({ commit }, trial))
  const { suspects, rounds: all } = await searchCulprit({
    commits,
    parallel: () => client.testers(),
    test: async (commit, trial) => (await test(commit, trial)).verdict,
    known: { verdicts, rounds },
    observe(event) {
      if (event.type === 'round') notes.add({ note: 'round' })
      report(told(event))
    },
    signal,
  })
  const [culprit] = suspects
  if (suspects.length !== 1 || culprit === undefined) {
    throw failure(
      'NO_REPAIR',
      `The culprit is one of ${suspects.length} commits, ${suspects.map(short).slice(0, 20).join(', ')}, but those between cannot be tested.`,
      'Prepare each checkout with --setup, or look at them one by one with `git show`.',
    )
  }
  const again = notedRuns(notes, 'culprit', watch)
  await confirmCulprit({ culprit, parent: await parentOf(git, culprit) }, again, signal)
  const subject = printable(await git.text(['log', '-1', '--format=%s', culprit]), 100)
  report({ type: 'search.culprit', commit: culprit, subject, rounds: all, alone: roundsNeeded(commits.length, 1) })
  notes.add({ note: 'culprit', commit: culprit })
  return culprit
}

function told(event: SearchEvent): AgentEvent {
  if (event.type === 'round') return { ...event, type: 'search.round' }
  if (event.type === 'verdict') return { ...event, type: 'search.verdict' }
  return { type: 'search.cancelled', commit: event.commit, because: event.because }
}

function cannotTest(commit: string, reason: string | undefined, detail: string): Error {
  const place = `at ${short(commit)}`
  if (reason === 'setup_failed') {
    return failure(
      'TEST_NOT_FOUND',
      `The --setup command failed ${place}: ${detail}`,
      'It runs once in each fresh checkout; try it in one.',
    )
  }
  if (reason === 'folder_missing') {
    return failure(
      'TEST_NOT_FOUND',
      `The folder given with --repo does not exist ${place}.`,
      'Give the top of the repository, or a later --good.',
    )
  }
  if (reason === 'skipped') {
    return failure(
      'TEST_NOT_FOUND',
      `The test command says ${place} that it cannot test (exit code 125).`,
      'Give revisions that can be tested.',
    )
  }
  return failure(
    'TEST_NOT_FOUND',
    `The test command could not be run ${place}: ${detail}`,
    'Check --test for typing errors; it runs with sh in a clean checkout, which --setup can prepare.',
  )
}
