import { mkdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { HermesError } from '@hermes-peer/protocol'
import { failureOf } from './failures.ts'

/** Makes the folder with mode 0700. Throws `STORAGE_FAILED` when it cannot be made, or others can look into it. */
export async function preparePrivate(folder: string): Promise<void> {
  const { mode } = await mkdir(folder, { recursive: true, mode: 0o700 })
    .then(() => stat(folder))
    .catch((cause: unknown) => {
      throw failureOf(folder, cause, 'cannot be made')
    })
  if (process.platform === 'win32' || (mode & 0o077) === 0) return
  throw new HermesError('STORAGE_FAILED', {
    message: `journal: others can look into ${folder} (mode ${(mode & 0o777).toString(8)})`,
    hint: `Run chmod 700 ${folder}.`,
    details: { folder },
  })
}

/** The files of LevelDB that hold data. */
export interface LevelFiles {
  /** Numbers, ascending. */
  readonly logs: readonly number[]
  /** File names by number. */
  readonly tables: ReadonlyMap<number, string>
  readonly names: ReadonlySet<string>
}

export function levelFiles(names: readonly string[]): LevelFiles {
  const numbered = names.map((name) => ({ name, match: /^(\d+)\.(log|ldb|sst)$/.exec(name) }))
  const logs: number[] = []
  const tables = new Map<number, string>()
  for (const { name, match } of numbered) {
    if (match?.[2] === 'log') logs.push(Number(match[1]))
    else if (match) tables.set(Number(match[1]), name)
  }
  return { logs: logs.sort((a, b) => a - b), tables, names: new Set(names) }
}

export const logName = (number: number): string => `${String(number).padStart(6, '0')}.log`

export const logPath = (folder: string, number: number): string => join(folder, logName(number))
