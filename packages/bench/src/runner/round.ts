import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { residentMb } from '../measure/cpu.ts'
import type { RowContext } from '../peers/peer.ts'
import type { RowEntry } from '../rows.ts'
import type { Figures, ScenarioName } from '../scenarios/scenario.ts'
import type { Worker, Workers } from './workers.ts'

const CALL_TIMEOUT_MS = 10_000
/** One call of the failover load may take this long. */
const FAILOVER_TIMEOUT_MS = 1_000

export interface RoundOptions {
  readonly entry: RowEntry
  readonly scenarios: ReadonlySet<ScenarioName>
  readonly workers: Workers
  /** For keys and trust of the processes; the caller removes it. */
  readonly folder: string
  /** Waits until the machine is quiet. */
  readonly quiet: () => Promise<void>
  /** Takes what a scenario measured. */
  readonly take: (scenario: ScenarioName, figures: Figures) => void
  /** Takes why a scenario did not work. */
  readonly failed: (scenario: ScenarioName, error: unknown) => void
}

/** Measures one row once, in processes of its own; leaves none behind. */
export async function runRound(options: RoundOptions): Promise<void> {
  const fresh = () => mkdtempSync(join(options.folder, 'round-'))
  try {
    await measurePair(options, fresh())
    await options.workers.endAll()
    if (wants(options, 'failover')) await attempt(options, 'failover', () => measureFailover(options, fresh()))
  } finally {
    await options.workers.endAll()
  }
}

function wants({ entry, scenarios }: RoundOptions, scenario: ScenarioName): boolean {
  return scenarios.has(scenario) && entry.scenarios.includes(scenario)
}

async function attempt(options: RoundOptions, scenario: ScenarioName, run: () => Promise<Figures>): Promise<void> {
  try {
    options.take(scenario, await run())
  } catch (error) {
    options.failed(scenario, error)
  }
}

function context(folder: string, more: Partial<RowContext> = {}): RowContext {
  return {
    capability: 'bench_echo',
    instance: 'one',
    folder,
    addresses: [],
    tagged: false,
    timeoutMs: CALL_TIMEOUT_MS,
    ...more,
  }
}

/** One server, one client: everything but failover. */
async function measurePair(options: RoundOptions, folder: string): Promise<void> {
  const { entry, workers, quiet } = options
  const own = context(folder)
  const server = workers.start({ role: 'server', row: entry.name, context: own })
  const { address } = await server.next('ready')
  if (wants(options, 'idle')) {
    await sleep(500)
    options.take('idle', { rssMb: residentMb(server.pid) })
  }
  const callers = { ...own, instance: 'client', addresses: [address] }
  const client = workers.start({ role: 'client', row: entry.name, context: callers })
  await client.next('first')
  if (wants(options, 'cold')) options.take('cold', { ms: performance.now() - client.startedAt })

  const pids = [server.pid, client.pid]
  if (wants(options, 'latency') || wants(options, 'throughput')) {
    // Load first, latency last: it takes thousands of calls until everything is compiled.
    await client.measure({ measure: 'throughput', ms: 800, warmMs: 0, inFlight: 32, pids })
  }
  const timed = async (scenario: ScenarioName, order: Parameters<Worker['measure']>[0]) => {
    if (!wants(options, scenario)) return
    await quiet()
    await attempt(options, scenario, () => client.measure(order))
  }
  await timed('throughput', { measure: 'throughput', ms: 700, warmMs: 100, inFlight: 64, pids })
  await timed('latency', { measure: 'latency', ms: 700, warmMs: 150, pids })
  await timed('stream', { measure: 'stream', count: 10_000, ms: 700, pids })
  await timed('big', { measure: 'big', bytes: 1_000_000, ms: 300 })
  const journal = { measure: 'journal', folder: mkdtempSync(join(folder, 'journal-')), ms: 800, together: 64 } as const
  await timed('journal', journal)
  if (wants(options, 'discovery')) {
    await attempt(options, 'discovery', () => measureDiscovery(options, client, callers))
  }
}

/** From the moment a fresh server starts to join until a running client has called it by capability. */
async function measureDiscovery({ entry, workers }: RoundOptions, client: Worker, own: RowContext): Promise<Figures> {
  const capability = 'bench_fresh'
  client.send({ do: 'measure', order: { measure: 'discovery', capability, ms: 20_000 } })
  await client.next('note')
  await sleep(100)
  const fresh = workers.start({ role: 'server', row: entry.name, context: { ...own, capability, instance: 'fresh' } })
  const [{ joinsAtMs }, { figures }] = await Promise.all([fresh.next('ready'), client.next('result')])
  return { ms: (figures.atMs ?? Number.NaN) - joinsAtMs }
}

/** Two servers under 500 calls a second; the busier one is killed after 0.8 s. */
async function measureFailover({ entry, workers }: RoundOptions, folder: string): Promise<Figures> {
  const own = context(folder, { tagged: true, timeoutMs: FAILOVER_TIMEOUT_MS })
  const servers = new Map<string, Worker>()
  const addresses: string[] = []
  for (const instance of ['one', 'two']) {
    const started = { ...own, instance, addresses: [...addresses] }
    const server = workers.start({ role: 'server', row: entry.name, context: started })
    servers.set(instance, server)
    addresses.push((await server.next('ready')).address)
  }
  const caller = { ...own, instance: 'client', addresses }
  const client = workers.start({ role: 'client', row: entry.name, context: caller })
  await client.next('first')
  client.send({
    do: 'measure',
    order: { measure: 'failover', rate: 500, ms: 2_800, killAfterMs: 800, timeoutMs: FAILOVER_TIMEOUT_MS },
  })
  const { detail = '' } = await client.next('note')
  const busiest = servers.get(detail)
  if (busiest === undefined) throw new Error(`no server is called ${detail}`)
  busiest.kill()
  return (await client.next('result')).figures
}
