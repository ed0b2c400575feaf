import { getEventListeners } from 'node:events'
import { capability, createPeer } from 'hermes-peer'
import { z } from 'zod'
import { actor, place } from './actors.ts'
import { dialLink } from './raw-link.ts'
import { createRawPeer } from './raw-peer.ts'

/** What is counted after each half, with all garbage collected. */
interface Sample {
  heap: number
  resources: number
  listeners: number
}

/** What the parent gets on standard output, one line of JSON. */
export interface LeakReport {
  calls: Record<string, number>
  /** Of the calls, those that were sent. */
  sent: number
  afterCalls: Sample[]
  afterCycles: Sample[]
  warnings: string[]
  balance: { calls: number; inFlight: number; succeeded: number; failed: number }
}

const [calls = 2000, cycles = 200] = process.argv.slice(2).map(Number)
const CONCURRENCY = 50
/** Share of the work before the two halves that are compared: code is compiled, what is remembered on purpose fills up. */
const WARM_UP = 0.2
const gc = (globalThis as { gc?: () => void }).gc as () => void

const warnings: string[] = []
process.on('warning', (warning) => warnings.push(`${warning.name}: ${warning.message}`))

const work = capability('work', {
  description: 'Ends in the way that it is told.',
  input: z.enum(['ok', 'fail', 'wait']),
  output: z.string(),
  effects: 'none',
  errors: { WANTED: z.object({ why: z.string() }) },
})

const [serverKey, clientKey, rawKey] = [actor('server'), actor('client'), actor('raw')]
const files = place()
// Small shares, so that what is remembered on purpose is full long before the first half is over.
const tuning = {
  // Half of the calls fail on purpose.
  breakerRow: 1e9,
  breakerLeast: 1e9,
  dedupIdsPerSender: 300,
  receiptFrames: 16,
  pendingHandshakesPerAddress: 1000,
}
const server = createPeer({
  agentId: 'server',
  preset: 'none',
  identity: files.keyFile(serverKey),
  trust: { allow: [clientKey.listed, rawKey.listed] },
  tuning,
}).provide(work, (input, ctx) => {
  if (input === 'ok') return 'done'
  if (input === 'fail') throw ctx.error('WANTED', { why: 'to see' })
  return new Promise((_, reject) =>
    ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason), { once: true }),
  )
})
await server.start()
const client = createPeer({
  agentId: 'client',
  preset: 'none',
  identity: files.keyFile(clientKey),
  trust: { allow: [serverKey.listed] },
  bootstrap: server.addresses,
  tuning,
})
await client.start()

let sent = 0
client.events.on('call.attempt', () => {
  sent++
})

/** One signal for all calls, as an application has for its whole life. */
const life = new AbortController()
const ended: Record<string, number> = {}

async function call(index: number): Promise<void> {
  const kind = index % 4
  const own = new AbortController()
  const options =
    [{ signal: life.signal }, { signal: life.signal }, { signal: own.signal }, { timeoutMs: 20, signal: life.signal }][
      kind
    ] ?? {}
  const input = (['ok', 'fail', 'wait', 'wait'] as const)[kind] ?? 'ok'
  const running = client.call(work, input, options).then(
    () => 'OK',
    (error: { code: string; declared?: { name: string } }) => error.declared?.name ?? error.code,
  )
  if (kind === 2) setTimeout(() => own.abort(), 5)
  const code = await running
  ended[code] = (ended[code] ?? 0) + 1
}

async function many(count: number, run: (index: number) => Promise<void>, width: number): Promise<void> {
  let next = 0
  const worker = async () => {
    while (next < count) await run(next++)
  }
  await Promise.all(Array.from({ length: width }, worker))
}

async function sample(): Promise<Sample> {
  for (let i = 0; i < 4; i++) {
    gc()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return {
    heap: process.memoryUsage().heapUsed,
    resources: process.getActiveResourcesInfo().length,
    listeners:
      getEventListeners(life.signal, 'abort').length +
      process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0),
  }
}

const afterCalls: Sample[] = []
await many(calls * WARM_UP, call, CONCURRENCY)
for (let half = 0; half < 2; half++) {
  await many((calls * (1 - WARM_UP)) / 2, call, CONCURRENCY)
  afterCalls.push(await sample())
}

const raw = await createRawPeer({ as: rawKey })
let epoch = Date.now()
/** Where there is little time, three of four links come up over the connection of the one before. */
const alwaysNew = cycles >= 1000
async function cycle(index: number): Promise<void> {
  const address = server.addresses[0] as string
  if (alwaysNew || index % 4 === 0) {
    for (const connection of raw.connections) connection.abort(new Error('done'))
    await raw.connect(address)
  }
  const link = await dialLink(raw, rawKey, address, { epoch: ++epoch })
  await link.answerTo(link.request('work', 'ok'))
  link.reset()
}
const afterCycles: Sample[] = []
await many(cycles * WARM_UP, cycle, 1)
for (let half = 0; half < 2; half++) {
  await many((cycles * (1 - WARM_UP)) / 2, cycle, 1)
  afterCycles.push(await sample())
}

const report: LeakReport = { calls: ended, sent, afterCalls, afterCycles, warnings, balance: client.balance() }
await raw.stop()
await client.stop()
await server.stop()
files.clear()
// No exit: a timer that is left over would show by keeping this process alive.
process.stdout.write(`${JSON.stringify(report)}\n`)
