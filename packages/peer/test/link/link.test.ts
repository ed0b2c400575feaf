import { HermesError } from '@hermes-peer/protocol'
import { describe, expect, it, vi } from 'vitest'
import { DEFAULTS } from '../../src/defaults.ts'
import { linkOverFake } from './fake-channel.ts'

const STOPPED = new HermesError('STOPPED')
const KiB = 1024
const MiB = 1024 * KiB
const numbers = (count: number) => Array.from({ length: count }, (_, i) => i)

describe('what has come before the end', () => {
  it.each([
    ['an orderly end', undefined],
    ['a lost connection', new Error('reset')],
  ])('is handled, all of it, before the link counts as closed: %s', async (_, error) => {
    const { arrive, driven, link, frames, log } = linkOverFake()
    arrive(50)
    driven.closed(error)
    expect(frames.length).toBeLessThan(50)
    // New envelopes look for another link meanwhile.
    expect(link.state).toBe('retired')
    expect(log).toEqual([])
    await vi.waitFor(() => expect(log).toEqual(['closed PEER_UNREACHABLE']))
    expect(frames).toEqual(numbers(50))
    expect(link.state).toBe('closed')
  })

  it('is handled when this side closes', () => {
    const { arrive, link, frames, log } = linkOverFake()
    arrive(50)
    link.close(STOPPED)
    expect(frames).toEqual(numbers(50))
    expect(log).toEqual(['closed STOPPED', 'close'])
  })

  it('is handled when a replaced link is closed after 5 s', async () => {
    const { arrive, link, frames, log, advance } = linkOverFake()
    link.retire(new HermesError('PEER_UNREACHABLE'))
    await advance(DEFAULTS.retiredLinkMs - 1)
    arrive(50)
    await advance(1)
    expect(frames).toEqual(numbers(50))
    expect(log).toEqual(['closed PEER_UNREACHABLE', 'close'])
  })

  it('and is not whole is dropped with the link', () => {
    const { arrive, arriveBytes, driven, frames, log } = linkOverFake()
    arrive(3)
    arriveBytes(Uint8Array.of(10, 1, 2, 3))
    driven.closed()
    expect(frames).toEqual(numbers(3))
    expect(log).toEqual(['closed PEER_UNREACHABLE'])
  })

  it('is not handled any more once the link is destroyed', async () => {
    const { arrive, frames, log } = linkOverFake({
      onFrame: (link, body) => {
        if (body[0] === 3) link.destroy(new HermesError('BAD_SIGNATURE'))
      },
    })
    arrive(50)
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
    expect(frames).toEqual(numbers(4))
    expect(log).toEqual(['destroyed BAD_SIGNATURE', 'abort'])
  })

  it('from this side is handed to the transport, also what waited for room', () => {
    const { link, state, sent, log } = linkOverFake()
    state.takes = false
    for (let i = 0; i < 20; i++) link.send(new Uint8Array(100).fill(i))
    expect(link.blocked).toBe(true)
    link.close(STOPPED)
    expect(sent.reduce((all, { length }) => all + length, 0)).toBe(2000)
    expect(log).toEqual(['closed STOPPED', 'close'])
  })
})

describe('what waits to be handled', () => {
  it('holds its sender back over 2 MiB, until half of that is left', async () => {
    const { arrive, log, frames } = linkOverFake()
    arrive(9, 128 * KiB)
    expect(log).toEqual([])
    arrive(40, 128 * KiB)
    expect(log).toEqual(['pause'])
    const left: number[] = []
    await vi.waitFor(() => {
      if (log.length === 1) left.push(49 - frames.length)
      expect(log).toEqual(['pause', 'resume'])
    })
    await vi.waitFor(() => expect(frames).toHaveLength(49))
    expect(Math.max(...left)).toBeGreaterThan(8)
    expect(log).toEqual(['pause', 'resume'])
  })

  it('never holds back the rest of a frame that is awaited', async () => {
    const { arriveBytes, arrive, log } = linkOverFake({ tuning: { linkReadBytes: 64 * KiB } })
    arrive(2, 50 * KiB)
    // The beginning of one of 1 MiB.
    arriveBytes(Buffer.concat([Uint8Array.of(0x80, 0x80, 0x40), new Uint8Array(100 * KiB)]))
    expect(log.filter((what) => what === 'pause').length).toBe(log.filter((what) => what === 'resume').length)
  })
})

describe('a link is stalled', () => {
  it('only while the transport gives off nothing of what waits', async () => {
    const { link, state, advance } = linkOverFake()
    expect(link.stalledAt).toBeUndefined()
    state.takes = false
    for (let i = 0; i < 8; i++) link.send(new Uint8Array(MiB))
    const began = link.stalledAt as number
    expect(began).toBeDefined()
    await advance(9000)
    expect(link.stalledAt).toBe(began)
    state.unsentBytes -= 1
    expect(link.stalledAt).toBe(began + 9000)
    await advance(1000)
    expect(link.stalledAt).toBe(began + 9000)
    // The other side tells that something has arrived.
    link.receipt(1)
    expect(link.stalledAt).toBe(began + 10_000)
    await advance(1000)
    link.receipt(1)
    expect(link.stalledAt).toBe(began + 10_000)
    // We ourselves stood still: nothing is known of the other side.
    link.forgiveSilence()
    expect(link.stalledAt).toBe(began + 11_000)
  })
})
