import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { capability, createPeer } from 'hermes-peer'
import { expect, it } from 'vitest'
import * as z from 'zod'

it('smoke', async () => {
  const t0 = performance.now()
  const folder = mkdtempSync(join(tmpdir(), 'h-'))
  const echo = capability('echo', { description: 'x', input: z.object({ n: z.number() }), output: z.object({ n: z.number() }), effects: 'none' })
  const a = createPeer({ agentId: 'a', folder })
  a.provide(echo, async ({ n }) => ({ n: n + 1 }))
  await a.start()
  const t1 = performance.now()
  const b = createPeer({ agentId: 'b', folder })
  b.events.onAny((e) => { if (!e.type.startsWith('envelope')) console.log(Math.round(performance.now() - t1), e.type, JSON.stringify(e).slice(0, 200)) })
  await b.start()
  const t2 = performance.now()
  console.log(await b.request(echo, { n: 1 }))
  const t3 = performance.now()
  for (let i = 0; i < 100; i++) await b.call(echo, { n: 1 })
  const t4 = performance.now()
  await b.stop(); await a.stop()
  const t5 = performance.now()
  console.log({ a: t1 - t0, b: t2 - t1, first: t3 - t2, hundred: t4 - t3, stop: t5 - t4 })
  expect(1).toBe(1)
})
