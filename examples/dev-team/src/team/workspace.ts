import { rmSync } from 'node:fs'
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The one folder that a run writes to, besides its result. */
export interface Workspace {
  /** Readable by this user only. */
  readonly folder: string
  remove(): Promise<void>
}

/** Makes the folder; it is removed when the process ends without having done so. */
export async function createWorkspace(): Promise<Workspace> {
  const folder = await mkdtemp(join(await realpath(tmpdir()), 'hermes-dev-team-'))
  const removeNow = (): void => rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  process.once('exit', removeNow)
  return {
    folder,
    async remove() {
      await rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 })
      process.off('exit', removeNow)
    },
  }
}
