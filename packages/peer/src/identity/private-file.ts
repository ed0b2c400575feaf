import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { HermesError } from '@hermes-peer/protocol'

/**
 * Writes a file of mode 0600 so that after a crash either the old or the new content is there: a temporary file is written,
 * flushed and renamed. `exclusive` refuses to replace. Throws `STORAGE_FAILED` that names the path.
 */
export function writePrivateFile(path: string, text: string, { exclusive = false } = {}): void {
  const temporary = exclusive ? path : `${path}.${process.pid}.tmp`
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const file = openSync(temporary, exclusive ? 'wx' : 'w', 0o600)
    try {
      writeSync(file, text)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    if (!exclusive) renameSync(temporary, path)
  } catch (cause) {
    if (exclusive && (cause as NodeJS.ErrnoException).code === 'EEXIST') return
    if (!exclusive) rmSync(temporary, { force: true })
    throw new HermesError('STORAGE_FAILED', {
      message: `cannot write ${path}: ${(cause as Error).message}`,
      details: { path },
      cause,
    })
  }
}
