import { join, relative } from 'node:path'
import { type Options, parseOptions } from './cli/options.ts'
import { createOutput, type Output } from './cli/output.ts'
import type { AgentEvent } from './events.ts'
import { EXIT_CODES, failure, isFailure } from './failures.ts'
import { assignOwn } from './job/assign-own.ts'
import { assignSample } from './job/assign-sample.ts'
import { modelEndpoint } from './repair/proposal.ts'
import { type Interruption, onInterruption } from './team/interruption.ts'
import { preparePrograms } from './team/programs.ts'
import { writeRoster } from './team/roster.ts'
import { stageKill, stagePmKill } from './team/staged-kill.ts'
import { createTally } from './team/tally.ts'
import { startTeam, type Team } from './team/team.ts'
import { createWorkspace } from './team/workspace.ts'

process.exitCode = await main(process.argv.slice(2))

/** Resolves with the exit code; nothing of the run is left by then but the patch. */
async function main(args: readonly string[]): Promise<number> {
  const interruption = onInterruption()
  const write = (text: string): void => {
    process.stdout.write(text)
  }
  const terminal = {
    write,
    writeError: (text: string): void => {
      process.stderr.write(text)
    },
    seconds: () => performance.now() / 1000,
    colour: process.stdout.isTTY === true && !process.env.NO_COLOR,
  }
  let output = createOutput({ ...terminal, json: args.includes('--json') })
  try {
    const options = parseOptions(args, { env: process.env, write })
    if (options === undefined) return 0
    output = createOutput({ ...terminal, json: options.json })
    await run(options, output, interruption)
    return 0
  } catch (error) {
    if (interruption.exitCode !== undefined) {
      output.stopped(interruption.exitCode)
      return interruption.exitCode
    }
    // A fault of ours: its stack is what a report needs.
    if (!isFailure(error)) console.error(error)
    const known = isFailure(error)
      ? error
      : failure('OTHER', 'The demo itself failed; the stack is above.', 'Please report it.')
    output.failed(known)
    return EXIT_CODES[known.kind]
  } finally {
    interruption.dispose()
  }
}

async function run(options: Options, output: Output, interruption: Interruption): Promise<void> {
  if (process.platform === 'win32') {
    throw failure('OTHER', 'The demo needs process groups and sh, which Windows does not have.', 'Run it in WSL.')
  }
  const workspace = await createWorkspace()
  let team: Team | undefined
  try {
    const { assignment, sample } = options.own
      ? { assignment: await assignOwn(workspace.folder, options.own), sample: undefined }
      : await assignSample(workspace.folder)
    const members = await writeRoster(workspace.folder, assignment, { out: options.out, durable: options.killPm })
    output.event('team', {
      type: 'job.started',
      commits: assignment.commits.length + 1,
      agents: members.length,
      model: modelEndpoint(process.env)?.model,
      sample: sample !== undefined,
      notes: assignment.notes,
    })
    const programs = await preparePrograms(join(workspace.folder, 'programs'))
    interruption.throwIfInterrupted()

    const tally = createTally()
    const staged = sample && stageKill(sample)
    const stagedPm = options.killPm ? stagePmKill() : undefined
    const started = startTeam({
      members,
      programs,
      restarted: options.killPm ? ['pm'] : [],
      observe(agentId, event) {
        tally.observe(agentId, event)
        // Failures are told in the end; a balance counts in the sum.
        if (!('message' in event) && event.type !== 'agent.balance') output.event(agentId, event)
        const kill = (agent: string, commit: string | undefined): void => {
          output.event(agent, { type: 'agent.killed', agent, commit })
          started.kill(agent)
        }
        const victim = staged?.observe(agentId, event as AgentEvent)
        if (victim !== undefined) kill(victim.agentId, victim.commit)
        if (stagedPm?.observe(agentId, event as AgentEvent)) kill('pm', undefined)
      },
    })
    team = started
    interruption.onSecond(() => started.killAll())
    const result = await Promise.race([started.result, interruption.happened])
    await started.stop()
    output.done({
      file: shownPath(result.file),
      reversalFile: result.reversalFile && shownPath(result.reversalFile),
      traceId: result.traceId,
      earlierTraceIds: result.earlierTraceIds,
      balance: tally.balance(),
      sample: sample !== undefined,
    })
  } finally {
    await team?.stop()
    await workspace.remove()
  }
}

/** As the user would write it, from where the user stands. */
function shownPath(path: string): string {
  const short = relative(process.env.INIT_CWD || process.cwd(), path)
  return short.startsWith('..') ? path : short
}
