import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { HermesError } from '@hermes-peer/protocol'

/**
 * Writes a file of mode 0600 so that after a crash either the old or the new content is there: a temporary file is written,
 * flushed and renamed. `exclusive` keeps what is there already: of two processes that begin at once both go on with one file. Throws `STORAGE_FAILED` that names the path.
 */
export function writePrivateFile(path: string, text: string, { exclusive = false } = {}): void {
  const temporary = `${path}.${process.pid}.tmp`
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const file = openSync(temporary, 'w', 0o600)
    try {
      writeSync(file, text)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    if (exclusive) linkUnlessThere(temporary, path)
    else renameSync(temporary, path)
  } catch (cause) {
    discard(temporary)
    throw new HermesError('STORAGE_FAILED', {
      message: `cannot write ${path}: ${(cause as Error).message}`,
      details: { path },
      cause,
    })
  }
}

/** A link is made whole or not at all, so that nobody ever reads half a file. */
function linkUnlessThere(temporary: string, path: string): void {
  try {
    linkSync(temporary, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  discard(temporary)
}

function discard(temporary: string): void {
  try {
    rmSync(temporary, { force: true })
  } catch {
    // What could not be made need not be removed.
  }
}
