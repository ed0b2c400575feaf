import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A file system of its own in memory, so small that it can be filled. */
export interface Tmpfs {
  readonly folder: string
  remount(mode: 'ro' | 'rw'): void
  dispose(): void
}

function run(command: string, ...args: string[]): string | undefined {
  const { error, status, stderr } = spawnSync(command, args, { encoding: 'utf8' })
  return status === 0 ? undefined : (error?.message ?? stderr.trim())
}

/** Throws with the reason where mounting is not permitted. */
export function mountTmpfs(mib: number): Tmpfs {
  const folder = mkdtempSync(join(tmpdir(), 'hermes-test-'))
  const refused = run('mount', '-t', 'tmpfs', '-o', `size=${mib}m,mode=700`, 'tmpfs', folder)
  if (refused !== undefined) {
    rmSync(folder, { recursive: true })
    throw new Error(refused)
  }
  return {
    folder,
    remount(mode) {
      const failed = run('mount', '-o', `remount,${mode}`, folder)
      if (failed !== undefined) throw new Error(failed)
    },
    dispose() {
      run('umount', '-l', folder)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Why there is no tmpfs to test on; undefined where there is. */
export function tmpfsRefusal(): string | undefined {
  try {
    mountTmpfs(1).dispose()
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}
