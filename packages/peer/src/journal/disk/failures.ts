import { HermesError } from '@hermes-peer/protocol'

/** What the system says, what it means, and what to do about it. */
const REASONS: readonly { said: RegExp; means: string; hint: string }[] = [
  {
    said: /ENOSPC|No space left/i,
    means: 'no space is left on its disk',
    hint: 'Free some space there; commits succeed again by themselves once there is room.',
  },
  {
    said: /EDQUOT|quota/i,
    means: 'the disk quota of this user is used up',
    hint: 'Free some space or raise the quota; commits succeed again by themselves once there is room.',
  },
  {
    said: /EROFS|Read-only/i,
    means: 'its file system can only be read',
    hint: 'Mount it for writing, or name another folder in the option journal.',
  },
  {
    said: /EACCES|EPERM|Permission denied|not permitted/i,
    means: 'this user may not write there',
    hint: 'Give the folder to the user that runs the agent (chown, chmod 700), or name another one in the option journal.',
  },
  {
    said: /ENOTDIR|Not a directory|EEXIST|File exists/i,
    means: 'a part of the path is a file, not a folder',
    hint: 'Name another folder in the option journal.',
  },
  {
    said: /EMFILE|ENFILE|Too many open files/i,
    means: 'too many files are open',
    hint: 'Raise the limit of open files (ulimit -n).',
  },
  {
    said: /EFBIG|File too large/i,
    means: 'a file would be larger than this process may write',
    hint: 'Raise the limit of file sizes (ulimit -f).',
  },
]

/** The innermost error: `classic-level` wraps what LevelDB said. */
function innermost(error: unknown): { code?: unknown; message: string } {
  let inner = error
  while (inner instanceof Error && inner.cause instanceof Error) inner = inner.cause
  return inner instanceof Error ? inner : { message: String(inner) }
}

/** `STORAGE_FAILED`, `JOURNAL_LOCKED` or `JOURNAL_CORRUPT`, naming the folder, the reason and what to do. */
export function failureOf(folder: string, cause: unknown, doing = 'cannot be written'): HermesError {
  if (cause instanceof HermesError) return cause
  const { code, message } = innermost(cause)
  if (code === 'LEVEL_LOCKED') return locked(folder, cause)
  if (code === 'LEVEL_CORRUPTION') return corrupt(folder, message.replace(/^Corruption: /, ''), cause)
  const reason = REASONS.find(({ said }) => said.test(message) || said.test(String(code)))
  return new HermesError('STORAGE_FAILED', {
    message: `journal: ${folder} ${doing}: ${reason?.means ?? message}`,
    hint: reason?.hint ?? 'Look at the disk of that folder; commits succeed again by themselves once it works.',
    details: { folder },
    cause,
  })
}

export function locked(folder: string, cause?: unknown): HermesError {
  return new HermesError('JOURNAL_LOCKED', {
    message: `journal: ${folder} is open in another process, or a second time in this one`,
    hint: 'Stop the other one (one agent id is one running process), or name a folder of its own in the option journal.',
    details: { folder },
    cause,
  })
}

export function corrupt(folder: string, what: string, cause?: unknown): HermesError {
  return new HermesError('JOURNAL_CORRUPT', {
    message: `journal: ${folder} is damaged: ${what}`,
    hint: `Restore the folder from a backup, or move it aside (mv ${folder} ${folder}.damaged) to begin with an empty journal: what it held is lost then.`,
    details: { folder },
    cause,
  })
}

export function notLoaded(folder: string, cause: unknown): HermesError {
  return new HermesError('STORAGE_FAILED', {
    message: `journal: ${folder} cannot be opened: the package classic-level cannot be loaded (${firstLine(cause)})`,
    hint: 'Install the dependencies for this platform; keep classic-level out of a bundle (external); or set journal: false, which keeps nothing beyond the process.',
    details: { folder },
    cause,
  })
}

const firstLine = (error: unknown): string => String((error as Error)?.message ?? error).split('\n', 1)[0] as string

export function newer(folder: string, found: number, known: number): HermesError {
  return new HermesError('JOURNAL_NEWER', {
    message: `journal: ${folder} has format ${found}, this version knows ${known}; it was left as it is`,
    hint: 'Run the version that wrote it or a newer one, or name another folder in the option journal to begin with an empty one.',
    details: { folder, format: found, known },
  })
}
