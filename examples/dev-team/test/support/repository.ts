import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** A repository for one test. */
export interface TestRepository {
  readonly folder: string
  git(...args: string[]): string
  /** Writes files (null removes one), commits all, returns the sha. */
  commit(subject: string, files: Record<string, string | null>): string
}

export function createRepository(folder: string): TestRepository {
  mkdirSync(folder, { recursive: true })
  const git = (...args: string[]): string =>
    execFileSync(
      'git',
      ['-c', 'user.name=T', '-c', 'user.email=t@example.org', '-c', 'commit.gpgsign=false', ...args],
      {
        cwd: folder,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' },
      },
    ).trim()
  git('init', '--quiet', '--initial-branch=main', '.')
  return {
    folder,
    git,
    commit(subject, files) {
      for (const [path, text] of Object.entries(files)) {
        const file = join(folder, path)
        if (text === null) rmSync(file)
        else {
          mkdirSync(dirname(file), { recursive: true })
          writeFileSync(file, text)
        }
      }
      git('add', '--all')
      git('commit', '--quiet', '--allow-empty', '--message', subject)
      return git('rev-parse', 'HEAD')
    },
  }
}

/** Digest of every name, kind, time of change and byte below a folder. */
export function digest(folder: string): string {
  const hash = createHash('sha256')
  const walk = (path: string): void => {
    const info = lstatSync(path)
    hash.update(`${path}\0${info.mode}\0${info.isDirectory() ? '' : info.mtimeMs}\0`)
    if (info.isSymbolicLink()) hash.update(readlinkSync(path))
    else if (info.isDirectory()) for (const name of readdirSync(path).sort()) walk(join(path, name))
    else hash.update(readFileSync(path))
  }
  walk(folder)
  return hash.digest('hex')
}
