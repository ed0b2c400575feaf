import { spawn } from 'node:child_process'
import type { AgentEvent } from '../events.ts'
import { createTail } from '../process/tail.ts'

/** An agent running as a process of its own, in a process group of its own. */
export interface AgentProcess {
  readonly agentId: string
  readonly running: boolean
  /** Gives it the addresses to begin with; it starts then. */
  start(bootstrap: readonly string[]): void
  /** Asks it to stop and waits; kills its group after a while. */
  stop(): Promise<void>
  /** `kill -9` of its group. */
  kill(): void
  /** Resolves with how it ended. */
  readonly ended: Promise<string>
  /** The end of what it wrote to its standard error. */
  errors(): string
}

/** Longest polite stop, ms; an agent ends its own peer in less. */
const STOP_LIMIT_MS = 3_000
const ERROR_BYTES = 16 * 1024

export function startAgentProcess({
  agentId,
  program,
  execArgv,
  configPath,
  env,
  onEvent,
}: {
  agentId: string
  /** Its program, and the options of node that this needs. */
  program: string
  execArgv: readonly string[]
  configPath: string
  env: NodeJS.ProcessEnv
  onEvent: (event: AgentEvent) => void
}): AgentProcess {
  // A group of its own, so that Ctrl-C reaches only this process, which then stops all.
  const child = spawn(process.execPath, [...execArgv, program, configPath], {
    env,
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  const errors = createTail(ERROR_BYTES)
  let running = true
  child.stderr?.on('data', (chunk: Buffer) => errors.push(chunk))
  child.on('message', (message) => {
    if (typeof (message as { type?: unknown } | null)?.type === 'string') onEvent(message as AgentEvent)
  })

  const kill = (): void => {
    if (child.pid === undefined) return
    try {
      process.kill(-child.pid, 'SIGKILL')
    } catch {
      // The whole group is gone.
    }
  }
  const ended = new Promise<string>((resolve) => {
    const end = (how: string): void => {
      running = false
      kill()
      resolve(how)
    }
    child.once('error', (error) => end(error.message))
    // `close` comes after the last message and the last line of its standard error.
    child.once('exit', kill)
    child.once('close', (code, signal) => end(signal ?? `exit code ${code}`))
  })
  const send = (message: object): void => {
    // An agent that has just ended cannot be told any more; `ended` says so.
    if (child.connected) child.send(message, () => {})
  }

  return {
    agentId,
    get running() {
      return running
    },
    start: (bootstrap) => send({ type: 'start', addresses: bootstrap }),
    async stop() {
      if (!running) return
      send({ type: 'stop' })
      const timer = setTimeout(kill, STOP_LIMIT_MS)
      await ended
      clearTimeout(timer)
    },
    kill,
    ended,
    errors: () => errors.text().trim(),
  }
}
