import { decodeFrame, decodeHeader, MAX_SINGLE_FRAME, Reader } from '@hermes-peer/protocol'
import { type TestNetwork, testNetwork } from '@hermes-peer/testkit'
import type { Peer } from 'hermes-peer'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { index, pay } from './contracts.ts'

describe('F-13 offline queue multiplied by reconnect attempts', () => {
  let net: TestNetwork
  let pm: Peer
  /** How often each message left pm, by its id. */
  let sent: Map<string, number>
  let started: string[]

  beforeEach(async () => {
    net = testNetwork({ seed: 13 })
    sent = new Map()
    started = []
    await net.until(net.launch('coder', prepare))
    pm = await net.peer('pm')
    await net.until(pm.manifest('coder'))
    net.onEvent((agentId, event) => {
      if (agentId !== 'pm' || event.type !== 'envelope.sent' || event.messageType !== 'submit') return
      sent.set(event.messageId, (sent.get(event.messageId) ?? 0) + 1)
    })
  })
  afterEach(() => net[Symbol.asyncDispose]())

  const prepare = (peer: Peer): void =>
    void peer
      .provide(index, async ({ folder }) => {
        started.push(folder)
        return { files: folder.length }
      })
      .provide(pay, async ({ invoice }) => {
        started.push(invoice)
        return { paid: true }
      })

  it('what waited for an agent that was away for a minute leaves once, in its order, and is done once', async () => {
    await net.crash('coder')
    await net.advance('5s')
    const tasks = await net.until(
      Promise.all(
        ['甲', '乙', '丙'].map((folder) => pm.submit(index, { folder }, { agent: 'coder', timeoutMs: 1000 })),
      ),
    )
    expect(tasks.map(({ acknowledged }) => acknowledged)).toEqual([false, false, false])
    await net.advance('55s')
    expect([...sent.values()]).toEqual([])
    await net.until(net.launch('coder', prepare))
    expect(await net.until(Promise.all(tasks.map((task) => task.result())))).toEqual([
      { files: 1 },
      { files: 1 },
      { files: 1 },
    ])
    await net.advance('60s')
    expect([...sent.values()]).toEqual([1, 1, 1])
    expect(started).toEqual(['甲', '乙', '丙'])
  })

  it('a connection that breaks between sending and ack costs one more sending, and no second start', async () => {
    // Breaks as soon as the submit has been read there, before its ack is back.
    const broken = new Promise<void>((resolve) => {
      const stop = net.onEvent((agentId, event) => {
        if (agentId !== 'coder' || event.type !== 'envelope.received' || event.messageType !== 'submit') return
        stop()
        net.faults.cut(net.peerId('pm'), net.peerId('coder'), { afterBytes: 0 })
        resolve()
      })
    })
    const submitted = pm.submit(pay, { invoice: 'R-7' }, { agent: 'coder' })
    await net.until(broken)
    const task = await net.until(submitted)
    expect(await net.until(task.result())).toEqual({ paid: true })
    await net.advance('60s')
    expect([...sent.values()]).toEqual([2])
    expect(started).toEqual(['R-7'])
  })

  it('what expires while nobody can be reached is taken out and told to whoever waits for it', async () => {
    await net.crash('coder')
    await net.advance('5s')
    const given = await net.until(
      pm.emit({ agent: 'coder', event: 'build.broken' }, 1, { ack: 'stored', timeoutMs: 2000 }),
    )
    expect(given).toEqual({ peers: 0, stored: false })
  })
})

/** The message type of a frame as it leaves. */
function typeOf(frame: Uint8Array): string | undefined {
  const read = decodeFrame(new Reader(frame).part(MAX_SINGLE_FRAME, 'the frame'))
  return read.tag === 2 ? undefined : decodeHeader(read.header).message_type
}

describe('a submit that was sent more than once', () => {
  it('goes to no other agent because one of its attempts was refused: another of them may have been taken', async () => {
    let began = Number.POSITIVE_INFINITY
    await using net: TestNetwork = testNetwork({
      seed: 21,
      sendFilter: (agentId) => (_, frame, deliver) => {
        const since = net.timeline.now() - began
        const type = agentId === 'coder' && since >= 0 ? typeOf(frame) : undefined
        // The refusal of the first attempt is late, and arrives before any ack of a later one.
        if (type === 'error') net.timeline.schedule(4_000, () => deliver(frame))
        else if (type !== 'ack' || since > 12_000) deliver(frame)
      },
    })
    const started: string[] = []
    const refusals: string[] = []
    let finish = (): void => undefined
    const prepare = (name: string) => (peer: Peer) =>
      void peer.provide(pay, async ({ invoice }) => {
        started.push(`${invoice} at ${name}`)
        if (invoice === 'first') await new Promise<void>((resolve) => (finish = resolve))
        return { paid: true }
      })
    await net.until(net.launch('coder', prepare('coder'), { tuning: { tasksPerOwner: 1 } }))
    const pm = await net.peer('pm')
    await net.until(pm.manifest('coder'))
    net.onEvent((agentId, event) => {
      if (agentId === 'pm' && event.type === 'envelope.received' && event.messageType === 'error')
        refusals.push(event.from)
    })
    const first = await net.until(pm.submit(pay, { invoice: 'first' }))
    const result = first.result()
    began = net.timeline.now()
    const submitted = pm.submit(pay, { invoice: 'second' }, { timeoutMs: 20_000 })
    await net.advance('500ms')
    finish()
    await net.until(result)
    await net.until(net.launch('other', prepare('other')))
    const task = await net.until(submitted)
    expect(await net.until(task.result())).toEqual({ paid: true })
    await net.advance('30s')
    expect(refusals).toContain('coder')
    expect(started).toEqual(['first at coder', 'second at coder'])
  })
})
