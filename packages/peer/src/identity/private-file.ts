import {
  closeSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeSync,
} from 'node:fs'
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

/**
 * The text of a key file that nobody else can read. `field` is the option that names it. Throws `INVALID_KEY_FILE` when there
 * is none, `KEY_FILE_EXPOSED` when group or others can read it, `STORAGE_FAILED`.
 */
export function readPrivateFile(path: string, field: string): string {
  checkMode(path, field)
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw new HermesError('STORAGE_FAILED', { message: `${field}: cannot read the key file ${path}`, cause })
  }
}

function checkMode(path: string, field: string): void {
  const stat = statOf(path, field)
  if (!stat) {
    throw new HermesError('INVALID_KEY_FILE', {
      message: `${field}: there is no key file at ${path}`,
      details: { field },
    })
  }
  if (!stat.isFile()) {
    throw new HermesError('INVALID_KEY_FILE', { message: `${field}: ${path} is not a file`, details: { field } })
  }
  // Windows has no such bits; there the folder's access list is what protects the file.
  if (process.platform !== 'win32' && (stat.mode & 0o077) !== 0) {
    throw new HermesError('KEY_FILE_EXPOSED', {
      message: `${field}: ${path} has mode ${(stat.mode & 0o777).toString(8)}, others can read it`,
      hint: `Run chmod 600 ${path}; if others may have read it, make a new key.`,
      details: { field },
    })
  }
}

function statOf(path: string, field: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch (cause) {
    throw new HermesError('STORAGE_FAILED', {
      message: `${field}: cannot look at ${path}: ${(cause as Error).message}`,
      details: { field, path },
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
