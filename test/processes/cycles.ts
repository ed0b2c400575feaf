import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { capability, createPeer } from 'hermes-peer'
import { z } from 'zod'

/** Starts and stops two peers many times, with a call between them each time; prints what is left and the heap after each cycle. */
const cycles = Number(process.argv[2])
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
const heap: number[] = []
const resources = () => process.getActiveResourcesInfo().filter((kind) => kind !== 'PipeWrap' && kind !== 'TTYWrap')
for (let cycle = 0; cycle < cycles; cycle++) {
  // What closing connections hold for up to ten seconds is gone before either window is measured.
  if (cycle === 40 || cycle === 90) await new Promise((resolve) => setTimeout(resolve, 12_000))
  const a = createPeer({ agentId: 'a', folder })
  a.provide(echo, ({ text }) => ({ text }))
  await a.start()
  const b = await createPeer({ agentId: 'b', folder }).start()
  const { text } = await b.call(echo, { text: '你好' })
  if (text !== '你好') throw new Error(`echo gave ${text}`)
  await b.stop()
  await a.stop()
  // Sockets that are closed leave at the next turns of the loop.
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
  // What hangs on weak references and finalizers goes in a later collection than the one that finds it.
  for (let i = 0; i < 3; i++) {
    collect()
    await new Promise((resolve) => setTimeout(resolve, 15))
  }
  heap.push(process.memoryUsage().heapUsed)
}
const quiet = Date.now() + 5_000
while (resources().length > 0 && Date.now() < quiet) await new Promise((resolve) => setTimeout(resolve, 50))
rmSync(folder, { recursive: true, force: true })
process.stdout.write(JSON.stringify({ heap, left: resources(), warnings }))
