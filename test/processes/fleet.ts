import { type ChildProcess, fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { program } from '../programs/program.ts'

export interface AgentMessage {
  type: 'ready' | 'started' | 'aborted'
  id?: string
  capability?: string
  reason?: string
  startedAt?: number
  addresses?: string[]
}

export interface AgentProcess {
  readonly agentId: string
  readonly child: ChildProcess
  readonly messages: AgentMessage[]
  ready(): Promise<AgentMessage>
  /** Resolves with the first message that fits. */
  said(fits: (message: AgentMessage) => boolean): Promise<AgentMessage>
  kill(signal: NodeJS.Signals): void
}

export interface LaunchOptions {
  readonly bootstrap?: readonly string[]
  /** Name of a capability that only this agent offers. */
  readonly extra?: string
  /** Offers the shared work, so many times at once. */
  readonly places?: number
}

/** Agents in processes of their own, in one private folder. Nothing of it is left after `stop`. */
export interface Fleet {
  readonly folder: string
  launch(agentId: string, options?: LaunchOptions): AgentProcess
  stop(): Promise<void>
}

export async function createFleet(): Promise<Fleet> {
  const folder = mkdtempSync(join(tmpdir(), 'hermes-fleet-'))
  const script = await program('test/processes/agent')
  const agents = new Set<AgentProcess>()
  return {
    folder,
    launch(agentId, { bootstrap = [], ...offers } = {}) {
      const child = fork(script, [JSON.stringify({ agentId, folder, bootstrap, ...offers })], {
        execArgv: [],
        stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      })
      let errors = ''
      child.stderr?.on('data', (text: Buffer) => {
        errors = (errors + text.toString()).slice(-2000)
      })
      const messages: AgentMessage[] = []
      const waiting = new Set<{ fits: (message: AgentMessage) => boolean; resolve: (message: AgentMessage) => void }>()
      child.on('message', (message) => {
        messages.push(message as AgentMessage)
        for (const one of waiting) {
          if (!one.fits(message as AgentMessage)) continue
          waiting.delete(one)
          one.resolve(message as AgentMessage)
        }
      })
      const said: AgentProcess['said'] = (fits) =>
        new Promise((resolve, reject) => {
          const past = messages.find(fits)
          if (past) return resolve(past)
          waiting.add({ fits, resolve })
          child.once('exit', (code) => reject(new Error(`${agentId} ended with ${code}: ${errors}`)))
        })
      const agent: AgentProcess = {
        agentId,
        child,
        messages,
        said,
        ready: () => said(({ type }) => type === 'ready'),
        kill: (signal) => child.kill(signal),
      }
      agents.add(agent)
      return agent
    },
    async stop() {
      await Promise.all(
        [...agents].map(
          ({ child }) =>
            new Promise<void>((resolve) => {
              if (child.exitCode !== null || child.signalCode !== null) return resolve()
              child.once('exit', () => resolve())
              child.kill('SIGKILL')
            }),
        ),
      )
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Resolves once `holds` does; rejects after `ms`. */
export async function eventually(holds: () => boolean | Promise<boolean>, ms = 10_000): Promise<void> {
  const end = performance.now() + ms
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`not so within ${ms} ms: ${holds}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
