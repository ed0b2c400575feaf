import { randomBytes } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { CoderConfig, PmConfig, ReviewerConfig, TesterConfig } from '../agents/config.ts'
import type { Assignment } from './assignment.ts'
import { writeKeys } from './keys.ts'
import type { Role } from './programs.ts'

/** One agent to be started. */
export interface Member {
  readonly agentId: string
  readonly role: Role
  readonly configPath: string
}

const TESTERS = ['tester-a', 'tester-b', 'tester-c'] as const
const ROLES = {
  pm: 'pm',
  'tester-a': 'tester',
  'tester-b': 'tester',
  'tester-c': 'tester',
  coder: 'coder',
  reviewer: 'reviewer',
} as const

/** A worktree may be prepared by an install of up to ten minutes before its first run. */
const SETUP_MS = 10 * 60_000
/** Most trials of the repair: each is a run of the test. */
const MAX_TRIALS = 400
const HOUR = 3_600_000

export interface RosterOptions {
  /** For the patch. */
  readonly out: string
  /** Whether pm, and with it the coder that works for it, are to survive the kill of pm. */
  readonly durable: boolean
}

/** Writes a key and a configuration for each of the six; each is told what it needs and nothing of the others. */
export async function writeRoster(
  folder: string,
  work: Assignment,
  { out, durable }: RosterOptions,
): Promise<Member[]> {
  const place = join(folder, 'team')
  await mkdir(place, { recursive: true, mode: 0o700 })
  const ids = Object.keys(ROLES) as (keyof typeof ROLES)[]
  const { keys, trust } = await writeKeys(place, ids)
  const network = `dev-team-${randomBytes(6).toString('hex')}`
  const common = (agentId: string) => ({
    agentId,
    network,
    trust,
    key: keys.get(agentId) as string,
    journal: durable && (agentId === 'pm' || agentId === 'coder'),
    workspace: folder,
  })
  const workFolder = (agentId: string) => join(folder, 'work', agentId)
  // Time to wait for a free tester, to check out and to prepare, on top of the run itself.
  const callTimeoutMs = 2 * work.limitMs + 30_000 + (work.setup === undefined ? 0 : SETUP_MS)
  const bench = (agentId: string) => ({
    repository: work.repository,
    folder: workFolder(agentId),
    prefix: work.prefix,
    limitMs: work.limitMs,
    dependencies: { root: work.dependencies.root, folders: [...work.dependencies.folders] },
    ...(work.setup === undefined ? {} : { setup: work.setup }),
  })
  const tester = (agentId: string): TesterConfig => ({ ...common(agentId), bench: bench(agentId), test: work.test })
  const reviewer: ReviewerConfig = { ...common('reviewer'), bench: bench('reviewer'), suite: work.suite }
  const coder: CoderConfig = {
    ...common('coder'),
    repository: work.repository,
    folder: workFolder('coder'),
    callTimeoutMs,
    maxTrials: MAX_TRIALS,
  }
  const pm: PmConfig = {
    ...common('pm'),
    repository: work.repository,
    good: work.good,
    bad: work.bad,
    commits: [...work.commits],
    testers: TESTERS.length,
    callTimeoutMs,
    repairTimeoutMs: Math.min(6 * HOUR, callTimeoutMs * 20),
    out,
    notes: join(workFolder('pm'), 'notes.jsonl'),
  }
  const configs = {
    pm,
    'tester-a': tester('tester-a'),
    'tester-b': tester('tester-b'),
    'tester-c': tester('tester-c'),
    coder,
    reviewer,
  }
  return Promise.all(
    ids.map(async (agentId) => {
      const configPath = join(place, `${agentId}.json`)
      await writeFile(configPath, JSON.stringify(configs[agentId]), { mode: 0o600 })
      return { agentId, role: ROLES[agentId], configPath }
    }),
  )
}
