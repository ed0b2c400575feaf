import { isHermesError } from 'hermes-peer'
import type { AgentEvent } from '../events.ts'
import { failure, isFailure } from '../failures.ts'
import { createGit } from '../git/git.ts'
import { findCulprit } from '../job/find-culprit.ts'
import { findTeam } from '../job/find-team.ts'
import { getRepair } from '../job/get-repair.ts'
import { getReview } from '../job/get-review.ts'
import { type Notes, openNotes } from '../job/notes.ts'
import { writePatch } from '../job/write-patch.ts'
import { type Agent, runAgent } from './agent.ts'
import { type PmConfig, pmConfig } from './config.ts'
import { createTestClient } from './test-client.ts'

await runAgent({
  config: pmConfig,
  // One trace for the whole collaboration, whoever calls whom.
  run: (agent) =>
    agent.peer.trace((traceId) =>
      work(agent, traceId).catch((error: unknown) => {
        if (isFailure(error) || !isHermesError(error)) throw error
        throw failure('OTHER', `${error.code}: ${error.message}`, error.hint, error)
      }),
    ),
})

/** The whole job: find the team, the culprit, its smallest repair, have it reviewed, write it. Goes on from its notes. */
async function work(agent: Agent<PmConfig>, traceId: string): Promise<void> {
  const { config, peer, report, stopping: signal, work } = agent
  const { good, bad, commits, callTimeoutMs, repairTimeoutMs } = config
  const notes = openNotes(config.notes)
  const earlier = notes.all('life').map((life) => life.traceId)
  notes.add({ note: 'life', traceId })
  // An earlier life had met them all: who is missing now was lost, and is not waited for.
  const team = await findTeam(peer, { testers: earlier.length === 0 ? config.testers : 1, signal })
  if (earlier.length === 0) report({ type: 'team.found', ...team })
  else report(resumed(notes))

  const git = createGit({ cwd: config.repository })
  const client = createTestClient({ peer, work, timeoutMs: callTimeoutMs })
  const culprit = await findCulprit({ git, good, bad, commits, client, notes, report, signal })

  const repaired = await getRepair({ peer, notes, report, culprit, good, bad, timeoutMs: repairTimeoutMs, signal })
  const reviewed = { peer, work, notes, report, commit: bad, good, timeoutMs: repairTimeoutMs, signal }
  let reversal = repaired.smallest
  if (!(await getReview({ ...reviewed, of: 'smallest', patch: reversal }))) {
    const { whole, proposal } = repaired
    const accepted = proposal !== undefined || (whole && (await getReview({ ...reviewed, of: 'whole', patch: whole })))
    if (!accepted) {
      throw failure(
        'NO_REPAIR',
        `The reviewer refuses the smallest repair and the whole reversal of ${culprit.slice(0, 7)}.`,
        'Both make the test pass, but break something else: repair by hand.',
      )
    }
    reversal = whole ?? reversal
  }
  const { proposal } = repaired
  const reversalFile = proposal && (await writePatch(config.out, 'reversal.patch', reversal))
  const file = await writePatch(config.out, 'fix.patch', proposal ?? reversal)
  notes.close()
  report({ type: 'job.done', file, reversalFile, traceId, earlierTraceIds: earlier })
}

function resumed(notes: Notes): AgentEvent {
  const task = notes.last('task')
  return {
    type: 'job.resumed',
    runs: notes.all('run').length,
    culprit: notes.last('culprit')?.commit,
    task: task && { id: task.id, agent: task.agent },
  }
}
