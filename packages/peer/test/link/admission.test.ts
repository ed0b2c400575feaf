import type { HermesError } from '@hermes-peer/protocol'
import { manualClock } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import { DEFAULTS, type Tunables } from '../../src/defaults.ts'
import { createHandshakeGate } from '../../src/link/admission.ts'

function gateOf(tuning: Partial<Tunables>, perAddress = true) {
  const clock = manualClock()
  const tunables = { ...DEFAULTS, ...tuning }
  const gate = createHandshakeGate({ clock, tunables, perAddress })
  const log: string[] = []
  /** Asks for a place under a name; what came of it is in the log. */
  const ask = (name: string, address = '/ip4/127.0.0.1/tcp/1') =>
    gate.request(address, {
      enter: () => void log.push(`${name} in`),
      refused: (error: HermesError) => void log.push(`${name} ${error.code}`),
    })
  return { clock, gate, log, ask, tunables }
}

describe('the handshake gate', () => {
  it('lets in at once while there is a place', () => {
    const { ask, log } = gateOf({ pendingHandshakes: 2 })
    ask('a')
    ask('b')
    ask('c')
    expect(log).toEqual(['a in', 'b in'])
  })

  it('gives a place on to who waits longest', () => {
    const { ask, log } = gateOf({ pendingHandshakes: 1 })
    const leave = ask('a')
    ask('b')
    ask('c')
    leave()
    expect(log).toEqual(['a in', 'b in'])
  })

  it('gives a place back once, however often it is left', () => {
    const { ask, log } = gateOf({ pendingHandshakes: 1 })
    const leave = ask('a')
    ask('b')
    ask('c')
    leave()
    leave()
    leave()
    expect(log).toEqual(['a in', 'b in'])
  })

  it('refuses with BUSY who has waited as long as a handshake may take', async () => {
    const { ask, log, clock } = gateOf({ pendingHandshakes: 1 })
    const leave = ask('a')
    ask('b')
    await clock.timeline.advance(DEFAULTS.handshakeTimeoutMs - 1)
    expect(log).toEqual(['a in'])
    await clock.timeline.advance(1)
    expect(log).toEqual(['a in', 'b BUSY'])
    leave()
    ask('c')
    expect(log.at(-1)).toBe('c in')
  })

  it('refuses at once when too many wait', () => {
    const { ask, log } = gateOf({ pendingHandshakes: 1, waitingHandshakes: 2 })
    for (const name of ['a', 'b', 'c', 'd']) ask(name)
    expect(log).toEqual(['a in', 'd BUSY'])
  })

  it('forgets who gives up while waiting', async () => {
    const { ask, log, clock } = gateOf({ pendingHandshakes: 1 })
    const leave = ask('a')
    const giveUp = ask('b')
    ask('c')
    giveUp()
    leave()
    expect(log).toEqual(['a in', 'c in'])
    await clock.timeline.advance('1m')
    expect(log).toEqual(['a in', 'c in'])
    expect(clock.timeline.pending).toBe(0)
  })

  it('bounds each address, whatever its port, so that one cannot keep the others out', () => {
    const { ask, log } = gateOf({ pendingHandshakes: 10, pendingHandshakesPerAddress: 2 })
    const leave = ask('x1', '/ip4/10.0.0.1/tcp/1')
    ask('x2', '/ip4/10.0.0.1/tcp/2')
    ask('x3', '/ip4/10.0.0.1/tcp/3')
    ask('y1', '/ip4/10.0.0.2/tcp/1')
    ask('z1', '/ip6/fe80::1/tcp/1')
    expect(log).toEqual(['x1 in', 'x2 in', 'y1 in', 'z1 in'])
    leave()
    expect(log.at(-1)).toBe('x3 in')
  })

  it('passes over who waits for its address when another can have the place', () => {
    const { ask, log } = gateOf({ pendingHandshakes: 2, pendingHandshakesPerAddress: 1 })
    ask('x1', '/ip4/10.0.0.1/tcp/1')
    const leave = ask('y1', '/ip4/10.0.0.2/tcp/1')
    ask('x2', '/ip4/10.0.0.1/tcp/2')
    ask('z1', '/ip4/10.0.0.3/tcp/1')
    leave()
    expect(log).toEqual(['x1 in', 'y1 in', 'z1 in'])
  })

  it('has no limit per address on one machine', () => {
    const { ask, log } = gateOf({ pendingHandshakes: 5, pendingHandshakesPerAddress: 1 }, false)
    for (const name of ['a', 'b', 'c']) ask(name)
    expect(log).toEqual(['a in', 'b in', 'c in'])
  })

  it('leaves no timer behind when it is closed', () => {
    const { ask, gate, clock } = gateOf({ pendingHandshakes: 1 })
    for (const name of ['a', 'b', 'c']) ask(name)
    gate.close()
    expect(clock.timeline.pending).toBe(0)
  })
})
