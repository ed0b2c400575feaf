import { type ChildProcess, fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { program } from '../programs/program.ts'

const TIER = (process.env.HERMES_TEST_TIER ?? 'test') as 'test' | 'ci' | 'long'
/** Agents in all. Fifty that start at once are a minute of two cores: each has to do with nearly all others. */
const SIZES = { test: [10], ci: [10, 20], long: [10, 20, 50] }[TIER] ?? [10]
const LIMIT_MS = { 10: 60_000, 20: 60_000, 50: 180_000 }
const PROCESSES = 5

interface Message {
  readonly type: 'ready' | 'found' | 'counted'
  readonly addresses?: string[]
  readonly missing?: string[]
  readonly dht?: number
  readonly gossip?: number
}

const heard = (child: ChildProcess, type: Message['type']): Promise<Message> =>
  new Promise((resolve, reject) => {
    const listen = (message: unknown) => {
      if ((message as Message).type !== type) return
      child.off('message', listen)
      resolve(message as Message)
    }
    child.on('message', listen)
    child.once('exit', (code) => reject(new Error(`ended with ${code}`)))
  })

test.each(SIZES)(
  '%i agents in five processes: all skills can be found by each process',
  { timeout: 300_000 },
  async (size) => {
    const folder = mkdtempSync(join(tmpdir(), 'hermes-many-'))
    const children: ChildProcess[] = []
    onTestFinished(async () => {
      for (const child of children) child.kill('SIGKILL')
      await Promise.all(
        children.map(
          (child) => child.exitCode ?? child.signalCode ?? new Promise((resolve) => child.once('exit', resolve)),
        ),
      )
      rmSync(folder, { recursive: true, force: true })
    })
    const script = await program('test/processes/many')
    const ids = Array.from({ length: size }, (_, index) => `m${index}`)
    const launch = async (bootstrap: string[], agents: string[]): Promise<Message> => {
      const child = fork(script, [JSON.stringify({ folder, bootstrap, agents })], {
        execArgv: [],
        stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      })
      children.push(child)
      return heard(child, 'ready')
    }
    const asked = async (what: object, type: Message['type']) =>
      Promise.all(
        children.map((child) => {
          const answer = heard(child, type)
          child.send(what)
          return answer
        }),
      )

    const limit = LIMIT_MS[size as keyof typeof LIMIT_MS]
    const begun = performance.now()
    const { addresses = [] } = await launch([], ids.slice(0, 1))
    const rest = ids.slice(1)
    await Promise.all(
      Array.from({ length: PROCESSES - 1 }, (_, process) =>
        launch(
          addresses,
          rest.filter((_, index) => index % (PROCESSES - 1) === process),
        ),
      ),
    )
    let found = await asked({ do: 'find', skills: ids }, 'found')
    const missing = () => found.flatMap((one) => one.missing ?? [])
    while (missing().length > 0 && performance.now() - begun < limit) found = await asked({ do: 'find' }, 'found')
    const took = performance.now() - begun
    expect(missing()).toEqual([])
    expect(took).toBeLessThan(limit)
    console.log(`${size} agents: all found by all processes after ${(took / 1000).toFixed(1)} s`)
    if (TIER === 'test') return

    const sum = (all: readonly Message[], kind: 'dht' | 'gossip') =>
      all.reduce((total, one) => total + (one[kind] ?? 0), 0)
    // Until what the start has brought about has settled; then one minute.
    await sleep(15_000)
    const before = await asked({ do: 'count' }, 'counted')
    await sleep(60_000)
    const after = await asked({ do: 'count' }, 'counted')
    const each = (kind: 'dht' | 'gossip') => Math.round((sum(after, kind) - sum(before, kind)) / size)
    console.log(
      `${size} agents: each got ${each('gossip')} messages of gossip and ${each('dht')} requests of the DHT in a minute`,
    )
    // Every other agent reports once in 10 s ± 10 %, and a mesh of 6 neighbours brings some of it more than once.
    expect(each('gossip')).toBeGreaterThan(5 * (size - 1))
    expect(each('gossip')).toBeLessThan(7 * (size - 1) * 6)
    expect(each('dht')).toBeLessThan(20 * size)
  },
)
