import { type TestNetwork, testNetwork } from '@hermes-peer/testkit'
import type { Peer, ReceivedEvent } from 'hermes-peer'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

let net: TestNetwork
let pm: Peer
let heard: ReceivedEvent[] = []
beforeEach(async () => {
  net = testNetwork({ seed: 5 })
  heard = []
  await net.until(net.launch('desk', listen))
  pm = await net.peer('pm')
})
afterEach(() => net[Symbol.asyncDispose]())

const listen = (peer: Peer): void => void peer.onEvent('build.broken', (event) => heard.push(event))
const emit = (timeoutMs = 5_000) =>
  pm.emit({ agent: 'desk', event: 'build.broken' }, { commit: '提交 a1' }, { ack: 'stored', timeoutMs })

describe('an event that is acknowledged once it is stored', () => {
  it('is stored, acknowledged, and heard once', async () => {
    expect(await net.until(emit())).toEqual({ peers: 1, stored: true })
    await net.advance('1s')
    expect(heard).toMatchObject([{ kind: 'event', name: 'build.broken', sender: 'pm', data: { commit: '提交 a1' } }])
    expect(Object.isFrozen(heard[0]?.data)).toBe(true)
  })

  it('may hold whatever an event can', async () => {
    let deep: unknown = 1
    for (let level = 0; level < 31; level++) deep = [deep]
    const wide = Object.fromEntries(Array.from({ length: 9_999 }, (_, i) => [`k${i}`, i]))
    for (const data of [deep, wide]) {
      const target = { agent: 'desk', event: 'build.broken' }
      const emitted = pm.emit(target, data, { ack: 'stored', timeoutMs: 5_000 })
      expect(await net.until(emitted)).toEqual({ peers: 1, stored: true })
    }
    expect(heard.map(({ data }) => data)).toEqual([deep, wide])
  })

  it('is sent again until the agent is there, and heard once however often it came', async () => {
    net.faults.partition([[net.peerId('pm')], [net.peerId('desk')]])
    await net.advance('20s')
    expect(await net.until(emit(2_000))).toEqual({ peers: 0, stored: false })
    await net.advance('20s')
    net.faults.heal()
    await net.advance('30s')
    expect(heard).toHaveLength(1)
  })

  it('is heard by the next life when the agent ended right after its ack, and not twice when it comes again', async () => {
    const acked = emit()
    const left = new Promise<void>((resolve) => {
      const stop = net.onEvent((agentId, event) => {
        if (agentId !== 'desk' || event.type !== 'envelope.sent' || event.messageType !== 'ack') return
        stop()
        resolve()
      })
    })
    await net.until(left)
    await net.crash('desk')
    const before = heard.length
    heard = []
    await net.until(net.launch('desk', listen))
    expect(await net.until(acked)).toMatchObject({ stored: true })
    await net.advance('30s')
    expect(heard.length).toBeLessThanOrEqual(1)
    expect(before + heard.length).toBeGreaterThanOrEqual(1)
  })

  it('is not heard again when it comes again while the next life is still looking for its neighbours', async () => {
    await net[Symbol.asyncDispose]()
    let dropAcks = true
    net = testNetwork({
      seed: 13,
      sendFilter: (agentId) => (_, frame, deliver) => {
        if (agentId !== 'desk' || !dropAcks || !Buffer.from(frame).includes('"message_type":"ack"')) deliver(frame)
      },
    })
    pm = await net.peer('pm')
    await net.until(net.launch('desk', listen))
    await net.advance('3s')
    expect(await net.until(emit(2_000))).toMatchObject({ stored: false })
    expect(heard).toHaveLength(1)
    await net.crash('desk')
    await net.advance('1s')
    dropAcks = false
    const [address = ''] = pm.addresses
    const nobody = address.replace(/tcp\/\d+/, 'tcp/9').replace(/\/p2p\/.*/, '')
    await net.until(net.launch('desk', listen, { bootstrap: [address, nobody] }))
    await net.advance('20s')
    expect(heard).toHaveLength(1)
  })

  it('survives the end of its sender before anybody had it', async () => {
    net.faults.partition([[net.peerId('pm')], [net.peerId('desk')]])
    await net.advance('20s')
    await net.until(emit(1_000))
    await net.crash('pm')
    net.faults.heal()
    pm = await net.peer('pm')
    await net.advance('30s')
    expect(heard).toHaveLength(1)
  })

  it('is refused for a topic, naming the option', async () => {
    const refused = await net.until(pm.emit({ topic: 'builds' }, 1, { ack: 'stored' }).catch((error: unknown) => error))
    expect(refused).toMatchObject({ code: 'INVALID_OPTION', details: { field: 'ack' } })
  })

  it('is not acknowledged while it cannot be stored, and is once it can', async () => {
    net.disk('desk').fail('full')
    expect(await net.until(emit(2_000))).toEqual({ peers: 0, stored: false })
    expect(heard).toEqual([])
    net.disk('desk').fail(undefined)
    await net.advance('15s')
    expect(heard).toHaveLength(1)
  })
})
