import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { capability, createPeer } from 'hermes-peer'
import { z } from 'zod'

/** Starts and stops two peers many times, with a call between them each time; prints what is left, and the heap after each cycle of two windows. */
const CYCLES = 100
/** `incomingMessageTimeout` of @libp2p/kad-dht, which cannot be set, and a little more. */
const DHT_TIMER_MS = 10_500
const WINDOWS = { early: [40, 50], late: [90, 100] } as const
const echo = capability('echo', {
  description: 'Gives back the text it got.',
  input: z.object({ text: z.string() }),
  output: z.object({ text: z.string() }),
  effects: 'none',
})
const folder = mkdtempSync(join(tmpdir(), 'hermes-cycles-'))
const warnings: string[] = []
process.on('warning', ({ name }) => warnings.push(name))
const collect = globalThis.gc as () => void
const heap: Record<keyof typeof WINDOWS, number[]> = { early: [], late: [] }
const resources = () => process.getActiveResourcesInfo().filter((kind) => kind !== 'PipeWrap' && kind !== 'TTYWrap')
for (let cycle = 0; cycle < CYCLES; cycle++) {
  // The library of the DHT bounds each incoming message by a timer of ten seconds that it never takes back, and that
  // holds the connection so long: what earlier cycles left there is gone before a window is measured.
  if (Object.values(WINDOWS).some(([first]) => first === cycle)) await sleep(DHT_TIMER_MS)
  const a = createPeer({ agentId: 'a', folder })
  a.provide(echo, ({ text }) => ({ text }))
  await a.start()
  const b = await createPeer({ agentId: 'b', folder }).start()
  const { text } = await b.call(echo, { text: '你好' })
  if (text !== '你好') throw new Error(`echo gave ${text}`)
  await b.stop()
  await a.stop()
  for (const name of ['early', 'late'] as const) {
    const [first, end] = WINDOWS[name]
    if (cycle >= first && cycle < end) heap[name].push(await heapAfterCollection())
  }
}
const quiet = Date.now() + 5_000
while (resources().length > 0 && Date.now() < quiet) await sleep(50)
rmSync(folder, { recursive: true, force: true })
process.stdout.write(JSON.stringify({ heap, left: resources(), warnings }))

async function heapAfterCollection(): Promise<number> {
  // Sockets that are closed leave at the next turns of the loop.
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
  // What hangs on weak references and finalizers goes in a later collection than the one that finds it.
  for (let i = 0; i < 3; i++) {
    collect()
    await sleep(15)
  }
  return process.memoryUsage().heapUsed
}
