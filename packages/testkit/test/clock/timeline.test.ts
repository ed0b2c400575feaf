import { AsyncLocalStorage } from 'node:async_hooks'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { createTimeline } from '../../src/clock/timeline.ts'

describe('advance', () => {
  it('fires timers by time, then by creation, and shows each the time it was set for', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 50 }), { maxLength: 60 }), async (delays) => {
        const timeline = createTimeline()
        const clock = timeline.clock()
        const fired: [number, number][] = []
        for (const [index, ms] of delays.entries()) clock.after(ms, () => fired.push([clock.monotonic(), index]))
        await timeline.advance(50)
        const expected = delays.map((ms, index) => [ms, index] as [number, number])
        expect(fired).toEqual(expected.sort((a, b) => a[0] - b[0] || a[1] - b[1]))
      }),
      { numRuns: 50 },
    )
  })

  it('does not fire what has been cleared, also when a timer of the same instant clears it', async () => {
    const timeline = createTimeline()
    const clock = timeline.clock()
    const fired: string[] = []
    const second = clock.after(5, () => fired.push('second'))
    const first = clock.after(4, () => {
      fired.push('first')
      clock.clear(second)
      clock.clear(first)
    })
    clock.clear(undefined)
    await timeline.advance(10)
    expect(fired).toEqual(['first'])
    expect(timeline.pending).toBe(0)
  })

  it('lets promises, ticks and immediates run to their end before the next timer', async () => {
    const timeline = createTimeline()
    const clock = timeline.clock()
    const order: string[] = []
    clock.after(1, () => {
      order.push('timer 1')
      queueMicrotask(() => order.push('microtask'))
      process.nextTick(() => order.push('tick'))
      setImmediate(() => {
        setImmediate(() => {
          process.nextTick(() => Promise.resolve().then(() => setImmediate(() => order.push('the last of a chain'))))
        })
      })
    })
    clock.after(1, () => order.push('timer 2'))
    await timeline.advance(1)
    expect(order).toEqual(['timer 1', 'tick', 'microtask', 'the last of a chain', 'timer 2'])
  })

  it('takes durations as text and refuses what is none', async () => {
    const timeline = createTimeline()
    for (const [text, ms] of [
      ['250ms', 250],
      ['5s', 5_000],
      ['1.5m', 90_000],
      ['2h', 7_200_000],
      ['1d', 86_400_000],
    ] as const) {
      const before = timeline.now()
      await timeline.advance(text)
      expect(timeline.now() - before).toBe(ms)
    }
    for (const wrong of ['5', 's', '-1s', '1 s', '1e3s', '5sec', -1, Number.NaN]) {
      await expect(timeline.advance(wrong)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    }
  })

  it('rejects with what a timer throws, and can be moved on afterwards', async () => {
    const timeline = createTimeline()
    const mistake = new Error('in a timer')
    let reached = false
    timeline.schedule(1, () => {
      throw mistake
    })
    timeline.schedule(2, () => {
      reached = true
    })
    await expect(timeline.advance(5)).rejects.toBe(mistake)
    await timeline.advance(5)
    expect(reached).toBe(true)
  })

  it('refuses to be moved by two at once', async () => {
    const timeline = createTimeline()
    const moving = timeline.advance(5)
    await expect(timeline.advance(5)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    await moving
    expect(timeline.now()).toBe(5)
  })

  it('does not mind another timeline that is moved at the same time', async () => {
    const fired = await Promise.all(
      [1, 2, 3].map(async () => {
        const timeline = createTimeline()
        const order: number[] = []
        for (let i = 0; i < 10; i++) {
          timeline.schedule(i, () => setImmediate(() => setImmediate(() => order.push(i))))
        }
        await timeline.advance(10)
        return order
      }),
    )
    for (const order of fired) expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  })

  it('ends when code calls setImmediate for ever', async () => {
    const timeline = createTimeline()
    let looping = true
    const loop = () => void (looping && setImmediate(loop))
    loop()
    await expect(timeline.advance(1)).rejects.toMatchObject({ code: 'TIMEOUT' })
    looping = false
  })

  it('goes on although the global timers are faked', async () => {
    vi.useFakeTimers()
    try {
      const timeline = createTimeline()
      await timeline.advance('1h')
      expect(timeline.now()).toBe(3_600_000)
    } finally {
      vi.useRealTimers()
    }
  })

  it('fires thousands of timers in a second of real time', async () => {
    const timeline = createTimeline()
    const clock = timeline.clock()
    let fired = 0
    const tick = () => {
      fired += 1
      clock.after(10, tick)
    }
    for (let i = 0; i < 100; i++) clock.after(1 + i / 10, tick)
    const began = process.hrtime.bigint()
    await timeline.advance('2s')
    const seconds = Number(process.hrtime.bigint() - began) / 1e9
    expect(fired).toBeGreaterThan(19_000)
    expect(fired / seconds).toBeGreaterThan(2_000)
  })
})

describe('runUntil', () => {
  it('passes on what a promise ends with, at the time it ends', async () => {
    const timeline = createTimeline()
    expect(await timeline.runUntil(timeline.sleep('3s').then(() => 'value'))).toBe('value')
    expect(timeline.now()).toBe(3_000)
    const reason = new Error('reason')
    await expect(timeline.runUntil(timeline.sleep('1s').then(() => Promise.reject(reason)))).rejects.toBe(reason)
  })

  it('stops in the instant in which a condition holds', async () => {
    const timeline = createTimeline()
    const clock = timeline.clock()
    let count = 0
    for (let i = 1; i <= 10; i++) clock.after(i * 100, () => count++)
    await timeline.runUntil(() => count === 4)
    expect([count, timeline.now()]).toEqual([4, 400])
  })

  it('says so when the limit is reached, and when nothing is left that could happen', async () => {
    const timeline = createTimeline()
    const clock = timeline.clock()
    await expect(timeline.runUntil(new Promise(() => {}))).rejects.toThrow(/nothing is left/)
    const again = () => void clock.after(100, again)
    again()
    await expect(timeline.runUntil(() => false, { limitMs: 1_000 })).rejects.toMatchObject({ code: 'TIMEOUT' })
    expect(timeline.now()).toBe(1_000)
  })
})

describe('async context', () => {
  it('is that of the caller in a timer of a clock, and no one in what the world schedules', async () => {
    const timeline = createTimeline()
    const clock = timeline.clock()
    const storage = new AsyncLocalStorage<string>()
    const seen: (string | undefined)[] = []
    const look = () => seen.push(storage.getStore())
    storage.run('call 1', () => {
      clock.after(5, () => {
        look()
        clock.after(5, look)
      })
      timeline.schedule(6, look)
    })
    storage.run('call 2', () => clock.after(5, look))
    await storage.run('mover', () => timeline.advance(20))
    expect(seen).toEqual(['call 1', 'call 2', undefined, 'call 1'])
  })
})

describe('sleep', () => {
  it('ends with the reason of its signal', async () => {
    const timeline = createTimeline()
    const controller = new AbortController()
    const sleeping = timeline.sleep('1h', { signal: controller.signal })
    controller.abort(new Error('enough'))
    await expect(sleeping).rejects.toThrow('enough')
    expect(timeline.pending).toBe(0)
    await expect(timeline.sleep(1, { signal: controller.signal })).rejects.toThrow('enough')
  })
})
