import { readFile } from 'node:fs/promises'
import { z } from 'zod'

/** What every agent is started with: its own identity, the team's trust file, nothing of the others. */
const common = z.object({
  agentId: z.string(),
  network: z.string(),
  key: z.string(),
  trust: z.string(),
  /** Whether it keeps a journal on disk, beside its key, to go on from should its process be killed. */
  journal: z.boolean(),
  /** The folder of the whole run, to be removed by the agents should they be left alone. */
  workspace: z.string(),
})

/** Where an agent that runs commands does so. */
const bench = z.object({
  /** Bare repository with all commits. */
  repository: z.string(),
  /** For a repository of its own that borrows from it, and the worktree. */
  folder: z.string(),
  /** Folder below the top of the repository in which commands run. */
  prefix: z.string(),
  setup: z.string().optional(),
  limitMs: z.number(),
  /** Installed dependencies of the user's working tree, to be linked. */
  dependencies: z.object({ root: z.string(), folders: z.array(z.string()) }),
})

export const testerConfig = common.extend({ bench, test: z.string() })

export const reviewerConfig = common.extend({ bench, suite: z.string() })

export const coderConfig = common.extend({
  repository: z.string(),
  /** For copies of commits and their worktrees. */
  folder: z.string(),
  callTimeoutMs: z.number(),
  maxTrials: z.number(),
})

export const pmConfig = common.extend({
  repository: z.string(),
  good: z.string(),
  bad: z.string(),
  /** After `good`, up to `bad`, oldest first. */
  commits: z.array(z.string()),
  /** How many testers were started; found ones count, this is only how long to wait for more. */
  testers: z.number(),
  callTimeoutMs: z.number(),
  repairTimeoutMs: z.number(),
  out: z.string(),
  /** The file of its notes, from which another life of it goes on. */
  notes: z.string(),
})

export type BenchConfig = z.infer<typeof bench>
export type CommonConfig = z.infer<typeof common>
export type TesterConfig = z.infer<typeof testerConfig>
export type ReviewerConfig = z.infer<typeof reviewerConfig>
export type CoderConfig = z.infer<typeof coderConfig>
export type PmConfig = z.infer<typeof pmConfig>

export async function readConfig<T>(path: string | undefined, schema: z.ZodType<T>): Promise<T> {
  if (path === undefined) throw new Error('an agent is started with the path of its configuration')
  return schema.parse(JSON.parse(await readFile(path, 'utf8')))
}
