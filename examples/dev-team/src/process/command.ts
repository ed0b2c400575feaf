import { spawn } from 'node:child_process'
import { createTail } from './tail.ts'

export type OnOutput = (chunk: Uint8Array, from: 'stdout' | 'stderr') => void

export interface CommandOptions {
  /** Given to `sh -c`; only ever what the user wrote on the command line. */
  command: string
  cwd: string
  env: NodeJS.ProcessEnv
  /** Longest run, ms; then the whole process group is killed. */
  limitMs: number
  /** Kills the whole process group at once. */
  signal?: AbortSignal
  /** Told once the command runs. */
  onStart?: (pid: number) => void
  /** Told all it writes, as it comes. */
  onOutput?: OnOutput
}

export interface CommandResult {
  /** Undefined when it was ended by a signal. */
  readonly code: number | undefined
  readonly timedOut: boolean
  readonly cancelled: boolean
  /** The last 64 KiB that the command wrote, both streams in the order of arrival. */
  readonly output: string
  readonly durationMs: number
}

/**
 * The command leads a process group of its own, so that it can be killed with everything it started. Descriptor 3 is held
 * open by this process alone: when this process is gone, however it ended, the guard reads the end and kills the group.
 */
const SCRIPT = '(read -r _ <&3; kill -KILL -$$) </dev/null >/dev/null 2>&1 & exec 3<&-; exec sh -c "$1"'

/** Kept of a command's output, bytes. */
const OUTPUT_BYTES = 64 * 1024

/** Runs a command to its end. Rejects only when no shell can be started; leaves no process of the command behind. */
export function runCommand({
  command,
  cwd,
  env,
  limitMs,
  signal,
  onStart,
  onOutput,
}: CommandOptions): Promise<CommandResult> {
  const startedAt = performance.now()
  const tail = createTail(OUTPUT_BYTES)
  if (signal?.aborted) {
    return Promise.resolve({ code: undefined, timedOut: false, cancelled: true, output: '', durationMs: 0 })
  }
  return new Promise((resolve, reject) => {
    const child = spawn('/bin/sh', ['-c', SCRIPT, 'sh', command], {
      cwd,
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    })
    let timedOut = false
    let cancelled = false
    const cancel = (): void => {
      cancelled = true
      killGroup(child.pid)
    }
    const timer = setTimeout(() => {
      timedOut = true
      killGroup(child.pid)
    }, limitMs)
    const settle = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', cancel)
    }
    signal?.addEventListener('abort', cancel, { once: true })
    for (const from of ['stdout', 'stderr'] as const) {
      child[from]?.on('data', (chunk: Buffer) => {
        tail.push(chunk)
        onOutput?.(chunk, from)
      })
    }
    child.once('spawn', () => onStart?.(child.pid as number))
    child.once('error', (error) => {
      settle()
      reject(error)
    })
    // The guard is still a member of the group, so its number cannot have passed to a stranger yet.
    child.once('exit', () => killGroup(child.pid))
    child.once('close', (code) => {
      settle()
      resolve({
        code: code ?? undefined,
        timedOut,
        cancelled,
        output: tail.text(),
        durationMs: performance.now() - startedAt,
      })
    })
  })
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // Nobody is left in it.
  }
}
