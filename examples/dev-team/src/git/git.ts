import { spawn } from 'node:child_process'
import { failure } from '../failures.ts'
import { gitEnvironment } from '../process/environment.ts'
import { createTail } from '../process/tail.ts'

export interface GitResult {
  readonly code: number
  readonly stdout: Buffer
  readonly stderr: string
}

export interface GitRunOptions {
  input?: string | Uint8Array
}

/** The git command line in one folder. No command is cancelled half-way: it would leave its lock to the next one. */
export interface Git {
  /** Runs to the end whatever the exit code. Fails with `NO_GIT` where there is no git. */
  try(args: readonly string[], options?: GitRunOptions): Promise<GitResult>
  /** Like `try`; an exit code other than 0 is an error that carries what git said. */
  run(args: readonly string[], options?: GitRunOptions): Promise<Buffer>
  /** Standard output as text without the line end. */
  text(args: readonly string[], options?: GitRunOptions): Promise<string>
}

/**
 * Settings of the user that would write into a repository, run something, or change what is read here: file system monitor
 * and housekeeping write below `.git`, hooks run commands, the others alter the form of paths or refuse a bare repository.
 */
const FIXED = [
  ['core.fsmonitor', 'false'],
  ['core.hooksPath', '/dev/null'],
  ['core.quotePath', 'false'],
  ['core.untrackedCache', 'false'],
  ['gc.auto', '0'],
  ['maintenance.auto', 'false'],
  ['advice.detachedHead', 'false'],
  ['commit.gpgSign', 'false'],
  ['rerere.enabled', 'false'],
  ['safe.bareRepository', 'all'],
].flatMap(([name, value]) => ['-c', `${name}=${value}`])

/** Largest output taken, bytes: a diff beyond it is no input for a person's repair either. */
const MAX_OUTPUT = 64 * 1024 * 1024

export function createGit({ cwd, env = process.env }: { cwd: string; env?: NodeJS.ProcessEnv }): Git {
  const execute = (args: readonly string[], { input }: GitRunOptions = {}): Promise<GitResult> =>
    new Promise((resolve, reject) => {
      const child = spawn('git', [...FIXED, ...args], {
        cwd,
        env: gitEnvironment(env),
        stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      })
      const stdout: Buffer[] = []
      const stderr = createTail(16 * 1024)
      let size = 0
      child.stdout?.on('data', (chunk: Buffer) => {
        size += chunk.length
        if (size > MAX_OUTPUT) child.kill('SIGKILL')
        else stdout.push(chunk)
      })
      child.stderr?.on('data', (chunk: Buffer) => stderr.push(chunk))
      child.once('error', (error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT')
          reject(failure('NO_GIT', 'git cannot be started.', 'Install git and see that it is on the PATH.', error))
        else reject(error)
      })
      child.once('close', (code) => {
        if (size > MAX_OUTPUT) reject(new Error(`git ${args[0]}: more than ${MAX_OUTPUT} bytes of output`))
        else resolve({ code: code ?? -1, stdout: Buffer.concat(stdout), stderr: stderr.text().trim() })
      })
      // A git that ends early closes its input; what it says about that is in its exit code.
      child.stdin?.on('error', () => {})
      child.stdin?.end(input)
    })

  const run = async (args: readonly string[], options?: GitRunOptions): Promise<Buffer> => {
    const result = await execute(args, options)
    if (result.code !== 0) throw new Error(`git ${args[0]}: ${result.stderr || `exit code ${result.code}`}`)
    return result.stdout
  }

  return {
    try: execute,
    run,
    text: async (args, options) => (await run(args, options)).toString('utf8').replace(/\r?\n$/, ''),
  }
}
