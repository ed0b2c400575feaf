import { capability } from '@hermes-peer/protocol'
import { manualClock, testNetwork } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import { createServer } from '../../src/calls/server.ts'
import { DEFAULTS } from '../../src/defaults.ts'
import type { WorkRecord } from '../../src/delivery/dedup.ts'
import type { Incoming } from '../../src/delivery/inbox.ts'
import { createTelemetry } from '../../src/telemetry/telemetry.ts'

describe('answers that go back over hops', () => {
  it('make room for later ones once they have gone back, though nobody tells that they arrived', async () => {
    await using net = testNetwork({ seed: 16 })
    const work = capability('work', { description: 'Works.', input: z.number(), output: z.string(), effects: 'once' })
    const tuning = { dedupBytesPerSender: 250_000, heartbeatMs: 500 }
    const f = await net.peer('f', { tuning })
    f.provide(work, (_, ctx) => ctx.forward('p') as never)
    const p = await net.peer('p', { tuning })
    p.provide(work, () => 'x'.repeat(100_000))
    const a = await net.peer('a')
    await net.advance('5s')
    for (let i = 0; i < 6; i++) {
      const answer = a.call(work, i, { agent: 'f', timeoutMs: 5_000 }).catch((error: { code: string }) => error.code)
      expect(await net.until(answer)).toHaveLength(100_000)
      await net.advance('2s')
    }
  })

  it('are given again the way that each attempt came, of which no trace is kept', () => {
    const clock = manualClock()
    const ways: string[] = []
    const server = createServer({
      agentId: 'p',
      clock,
      tunables: DEFAULTS,
      telemetry: createTelemetry({ clock }),
      links: { get: (agentId: string) => void ways.push(agentId) },
    } as never)
    const record: WorkRecord = {
      messageType: 'request',
      capability: 'work',
      payloadSha256: 'ab',
      messageId: 'msg_0',
      expiresAt: 1000,
      state: 'done',
      outcome: { messageType: 'response', contentType: 'application/json', payload: new Uint8Array(2) },
      waiters: [],
      settled: false,
    }
    for (const leaf of ['1', '2', '3']) {
      const header = { message_type: 'request', message_id: 'msg_0', target_capability: 'work', payload_sha256: 'ab' }
      const link = { remote: { agentId: `f${leaf}` } }
      server.duplicate(
        { header, from: 'a', via: [`f${leaf}`], leaf, link, expiresAt: 1000 } as never as Incoming,
        record,
      )
    }
    expect(ways).toEqual(['f1', 'f2', 'f3'])
    expect(record.back).toBeUndefined()
  })
})
