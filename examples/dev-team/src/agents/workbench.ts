import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createTurns } from '../concurrency/turns.ts'
import { borrowObjects } from '../git/copy.ts'
import { linkDependencies } from '../git/dependencies.ts'
import { openRepository } from '../git/repository.ts'
import { addWorktree, type Worktree } from '../git/worktree.ts'
import { type CommandResult, type OnOutput, runCommand } from '../process/command.ts'
import { commandEnvironment } from '../process/environment.ts'
import { summarize } from '../process/summary.ts'
import type { BenchConfig } from './config.ts'

/** A worktree in which commands of the user run, one piece of work at a time. */
export interface Workbench {
  /**
   * Brings the worktree to a commit, with a patch on top, and works there. Earlier work is over before it begins. Throws
   * {@link isBenchProblem} values for what is no verdict.
   */
  use<T>(
    state: { commit: string; patch?: Uint8Array },
    signal: AbortSignal,
    work: (bench: Bench) => Promise<T>,
  ): Promise<T>
}

export interface Bench {
  /** Where commands run. */
  readonly folder: string
  readonly worktree: Worktree
  run(command: string, onOutput?: OnOutput): Promise<CommandResult>
}

export interface BenchProblem {
  readonly reason: 'setup_failed' | 'folder_missing' | 'patch_does_not_apply'
  readonly detail: string
}

/** Longest preparation of a worktree, ms: an install of many packages over a slow network. */
const SETUP_LIMIT_MS = 10 * 60_000

class BenchError extends Error implements BenchProblem {
  readonly reason: BenchProblem['reason']
  readonly detail: string

  constructor(reason: BenchProblem['reason'], detail: string) {
    super(detail)
    this.reason = reason
    this.detail = detail
  }
}

export function isBenchProblem(value: unknown): value is BenchProblem {
  return value instanceof BenchError
}

export function createWorkbench(config: BenchConfig): Workbench {
  let worktree: Worktree | undefined
  let prepared = false
  const turns = createTurns()

  const openWorktree = async (commit: string): Promise<Worktree> => {
    const repository = join(config.folder, 'repository.git')
    await borrowObjects(await openRepository(config.repository), repository)
    return addWorktree({ repository, path: join(config.folder, 'files'), commit })
  }

  const prepare = async (top: string, folder: string, signal: AbortSignal): Promise<void> => {
    if (config.setup === undefined) {
      await linkDependencies(config.dependencies.root, config.dependencies.folders, top)
      return
    }
    const result = await runCommand({
      command: config.setup,
      cwd: folder,
      env: commandEnvironment(process.env, folder),
      limitMs: SETUP_LIMIT_MS,
      signal,
    })
    signal.throwIfAborted()
    if (result.code !== 0) throw new BenchError('setup_failed', summarize(result.output))
  }

  const bring = async (commit: string, patch: Uint8Array | undefined, signal: AbortSignal): Promise<Bench> => {
    worktree ??= await openWorktree(commit)
    await worktree.checkout(commit)
    const folder = join(worktree.path, config.prefix)
    if (!existsSync(folder)) throw new BenchError('folder_missing', `there is no ${config.prefix} in this commit`)
    if (!prepared) await prepare(worktree.path, folder, signal)
    prepared = true
    signal.throwIfAborted()
    if (patch !== undefined && !(await worktree.apply(patch))) {
      throw new BenchError('patch_does_not_apply', 'the patch does not apply to this commit')
    }
    const run: Bench['run'] = (command, onOutput) =>
      runCommand({
        command,
        cwd: folder,
        env: commandEnvironment(process.env, folder),
        limitMs: config.limitMs,
        signal,
        ...(onOutput === undefined ? {} : { onOutput }),
      })
    return { folder, worktree, run }
  }

  return {
    use: ({ commit, patch }, signal, work) => turns.take(signal, async () => work(await bring(commit, patch, signal))),
  }
}
