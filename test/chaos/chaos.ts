import { type ChildProcess, fork } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { bundle, bundled } from '../programs/bundle.ts'
import type { AgentOptions, LogLine, Order, State } from './contracts.ts'
import { judge, type Verdict } from './judge.ts'

export interface ChaosOptions {
  readonly agents: number
  /** Tasks that are submitted in all. */
  readonly tasks: number
  /** The run ends after this, or when all tasks are submitted, whichever is first, s. */
  readonly seconds: number
  /** Stops it before its time. */
  readonly signal?: AbortSignal
  report?(line: string): void
}

export interface ChaosResult extends Verdict {
  readonly kills: number
  readonly stops: number
  readonly tookMs: number
  /** From the last fault until nothing was open any more, ms; undefined when it did not come to that. */
  readonly drainedMs: number | undefined
}

/** How long everything may take to come to its end after the last fault. */
const DRAIN_MS = 60_000

interface Agent {
  readonly options: AgentOptions
  child: ChildProcess
  state: State
  ready: Promise<void>
}

/** Agents in processes of their own that give one another tasks while they are killed and stopped; nothing of it is left. */
export async function runChaos({ agents: count, tasks, seconds, signal, report }: ChaosOptions): Promise<ChaosResult> {
  const folder = mkdtempSync(join(tmpdir(), 'hermes-chaos-'))
  const agents: Agent[] = []
  try {
    await bundle(folder, ['test/chaos/agent'])
    const script = bundled(folder, 'test/chaos/agent')
    const ports = await freePorts(count)
    const address = (i: number) => `/ip4/127.0.0.1/tcp/${ports[i]}`
    const launch = (agent: Agent, order: Order): void => {
      const child = fork(script, [JSON.stringify(agent.options)], {
        execArgv: [],
        stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      })
      agent.child = child
      agent.ready = new Promise((resolve) => {
        child.on('message', (message: State | 'ready') => {
          if (message !== 'ready') agent.state = message
          else {
            child.send(order)
            resolve()
          }
        })
        child.once('exit', () => resolve())
      })
    }
    const order: Order = { submit: Math.ceil(tasks / count) }
    for (let i = 0; i < count; i++) {
      const options: AgentOptions = {
        agentId: `agent-${i}`,
        folder: join(folder, 'private'),
        port: ports[i] as number,
        // As services have it: each comes back where it was, and two of them are known to all.
        bootstrap: [0, 1].filter((other) => other !== i).map(address),
        log: join(folder, `agent-${i}.log`),
      }
      const agent = { options, state: { submitted: 0, open: 0 } } as Agent
      agents.push(agent)
      launch(agent, order)
    }
    await Promise.all(agents.map(({ ready }) => ready))

    const since = performance.now()
    const elapsed = () => performance.now() - since
    const submitted = () => agents.reduce((sum, { state }) => sum + state.submitted, 0)
    let kills = 0
    let stops = 0
    const stopped = new Set<Agent>()
    let killAt = between(2_000, 7_000)
    let stopAt = between(3_000, 8_000)
    let toldAt = 5_000
    const pick = (): Agent =>
      agents.filter((agent) => !stopped.has(agent))[Math.floor(Math.random() * (count - stopped.size))] as Agent
    while (elapsed() < seconds * 1000 && submitted() < tasks && !signal?.aborted) {
      if (elapsed() >= killAt) {
        const victim = pick()
        victim.child.kill('SIGKILL')
        await exited(victim.child)
        kills++
        launch(victim, order)
        killAt = elapsed() + between(2_000, 7_000)
      }
      if (elapsed() >= stopAt && stopped.size === 0) {
        const { child } = pick()
        const agent = agents.find((one) => one.child === child) as Agent
        child.kill('SIGSTOP')
        stops++
        stopped.add(agent)
        setTimeout(
          () => {
            child.kill('SIGCONT')
            stopped.delete(agent)
          },
          between(1_000, 20_000),
        )
        stopAt = elapsed() + between(5_000, 15_000)
      }
      if (elapsed() >= toldAt) {
        report?.(
          `${Math.round(elapsed() / 1000)} s: ${submitted()} of ${tasks} submitted, ${kills} kills, ${stops} stops`,
        )
        toldAt += 5_000
      }
      await sleep(50)
    }
    for (const { child } of stopped) child.kill('SIGCONT')
    const healed = performance.now()
    await Promise.all(agents.map(({ ready }) => ready))
    // No more is submitted; what was begun comes to its end.
    for (const { child, state } of agents) child.send({ submit: state.submitted } satisfies Order)
    let drainedMs: number | undefined
    let quiet = 0
    while (performance.now() - healed < DRAIN_MS && !signal?.aborted) {
      await sleep(500)
      // Twice in a row: a state is half a second old.
      quiet = agents.every(({ state }) => state.open === 0) ? quiet + 1 : 0
      if (quiet < 3) continue
      drainedMs = performance.now() - healed
      break
    }
    for (const { child } of agents) if (child.connected) child.send({ stop: true } satisfies Order)
    await Promise.race([Promise.all(agents.map(({ child }) => exited(child))), sleep(10_000)])
    const verdict = judge(agents.map(({ options }) => readLog(options.log)))
    return { ...verdict, kills, stops, tookMs: performance.now() - since, drainedMs }
  } finally {
    for (const { child } of agents) if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await Promise.all(agents.map(({ child }) => exited(child)))
    rmSync(folder, { recursive: true, force: true })
  }
}

const between = (least: number, most: number): number => least + Math.random() * (most - least)

function exited(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve()
  return new Promise((resolve) => child.once('exit', () => resolve()))
}

async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer())
  const ports = await Promise.all(
    servers.map(
      (server) =>
        new Promise<number>((resolve) =>
          server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port)),
        ),
    ),
  )
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}

/** What was cut off by a kill is no line; what follows it is one again. */
function readLog(path: string): LogLine[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .flatMap((line) => {
      try {
        return [JSON.parse(line) as LogLine]
      } catch {
        return []
      }
    })
}
