import { manualClock } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import { DEFAULTS } from '../../src/defaults.ts'
import { createKeeper } from '../../src/link/keeper.ts'
import { createTelemetry } from '../../src/telemetry/telemetry.ts'
import { type FakeLink, fakeLink, linksOf } from './support.ts'

function keeping(options: { pending?: boolean } = {}) {
  const manual = manualClock()
  let stoodStill = 0
  // While the event loop stands still time passes, but no timer fires.
  const clock = { ...bound(manual), monotonic: () => manual.monotonic() + stoodStill }
  const link = fakeLink(clock)
  const beats: { at: number; reply: boolean }[] = []
  const probes: number[] = []
  const telemetry = createTelemetry({ clock })
  telemetry.events.on('link.probe', ({ unanswered }) => probes.push(unanswered))
  const state = { pending: options.pending ?? true, answering: false }
  const keeper = createKeeper({
    links: linksOf(link),
    clock,
    tunables: DEFAULTS,
    telemetry,
    pending: () => state.pending,
    beat: (_, reply) => {
      beats.push({ at: clock.monotonic(), reply })
      if (reply && state.answering) hear(link, clock.monotonic())
    },
  })
  keeper.start()
  return {
    link,
    beats,
    probes,
    keeper,
    state,
    now: () => clock.monotonic(),
    advance: (ms: number) => manual.timeline.advance(ms),
    stall: (ms: number) => {
      stoodStill += ms
    },
    pendingTimers: () => manual.timeline.pending,
  }
}

const bound = (clock: ReturnType<typeof manualClock>) => ({
  now: () => clock.now(),
  after: clock.after.bind(clock),
  clear: clock.clear.bind(clock),
})

/** A frame has come, as a link notes it. */
function hear(link: FakeLink, at: number) {
  link.heardAt = at
  link.probes = 0
}

describe('silence with calls pending', () => {
  it('is probed after 5 s, every 4 s; three unanswered probes destroy the link: 17 s in all', async () => {
    const { link, beats, probes, advance, now } = keeping()
    await advance(16_999)
    expect(beats).toEqual([
      { at: 5000, reply: true },
      { at: 9000, reply: true },
      { at: 13_000, reply: true },
    ])
    expect(probes).toEqual([1, 2, 3])
    expect(link.destroyed).toBeUndefined()
    await advance(1)
    expect(now()).toBe(17_000)
    expect(link.destroyed?.code).toBe('PEER_UNREACHABLE')
    expect(link.destroyed?.message).toContain('other')
  })

  it('ends with any traffic: the count starts over', async () => {
    const { link, beats, advance, now } = keeping()
    await advance(13_000)
    hear(link, now())
    await advance(16_000)
    expect(link.destroyed).toBeUndefined()
    expect(beats.filter(({ reply }) => reply)).toHaveLength(6)
    await advance(1000)
    expect(link.destroyed).toBeDefined()
  })

  it('of a peer that answers its probes never ends in death', async () => {
    const { link, state, advance } = keeping()
    state.answering = true
    await advance(10 * 60_000)
    expect(link.destroyed).toBeUndefined()
  })
})

describe('silence of an idle link', () => {
  it('is left alone for three heartbeats, then probed', async () => {
    const { link, probes, advance } = keeping({ pending: false })
    await advance(DEFAULTS.idleSilenceMs - 1)
    expect(probes).toEqual([])
    await advance(1)
    expect(probes).toEqual([1])
    await advance(2 * DEFAULTS.probeMs)
    expect(link.destroyed).toBeUndefined()
    await advance(DEFAULTS.probeMs)
    expect(link.destroyed?.code).toBe('PEER_UNREACHABLE')
  })

  it('counts from its beginning when a call becomes pending in it', async () => {
    const { probes, state, advance } = keeping({ pending: false })
    await advance(20_000)
    state.pending = true
    await advance(1000)
    expect(probes).toEqual([1])
  })
})

describe('heartbeats', () => {
  it('go out every 15 s on a link that is heard', async () => {
    const { link, beats, advance, now } = keeping({ pending: false })
    for (let i = 0; i < 60; i++) {
      await advance(1000)
      hear(link, now())
    }
    expect(beats).toEqual([15_000, 30_000, 45_000, 60_000].map((at) => ({ at, reply: false })))
  })

  it('go out at once when a receipt is due', () => {
    const { link, beats, keeper } = keeping()
    keeper.received(link)
    expect(beats).toEqual([])
    link.receiptDue = true
    keeper.received(link)
    expect(beats).toEqual([{ at: 0, reply: false }])
    expect(link.receipts).toBe(1)
  })
})

describe('F-24 busy is taken for dead', () => {
  it('after a stall of our own event loop nobody is declared dead: all silence starts over', async () => {
    const { link, probes, advance, stall } = keeping()
    await advance(4000)
    stall(60_000)
    await advance(1000)
    expect(probes).toEqual([])
    expect(link.destroyed).toBeUndefined()
    await advance(5000)
    expect(probes).toEqual([1])
  })

  it('a stall between probes forgives them too', async () => {
    const { link, advance, stall, state } = keeping()
    await advance(13_000)
    expect(link.probes).toBe(3)
    stall(10_000)
    await advance(1000)
    expect(link.probes).toBe(0)
    state.answering = true
    await advance(60_000)
    expect(link.destroyed).toBeUndefined()
  })

  it('a short hiccup is no stall: a peer that is really silent is still found out', async () => {
    const { link, advance, stall } = keeping()
    await advance(4000)
    stall(DEFAULTS.stallMs - 1)
    await advance(17_000)
    expect(link.destroyed).toBeDefined()
  })
})

describe('a link that takes nothing', () => {
  it('for 10 s is cut, however much comes from it', async () => {
    const { link, advance, now } = keeping()
    link.stalledAt = now()
    for (let i = 0; i < 10; i++) {
      await advance(1000)
      hear(link, now())
    }
    expect(link.destroyed).toBeUndefined()
    await advance(1000)
    expect(link.destroyed?.code).toBe('PEER_UNREACHABLE')
  })
})

describe('the keeper', () => {
  it('leaves no timer when it stops', async () => {
    const { keeper, advance, pendingTimers, beats } = keeping()
    await advance(3000)
    keeper.stop()
    expect(pendingTimers()).toBe(0)
    await advance(60_000)
    expect(beats).toEqual([])
  })
})
