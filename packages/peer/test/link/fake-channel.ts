import { part } from '@hermes-peer/protocol'
import { manualClock } from '@hermes-peer/testkit'
import { DEFAULTS, type Tunables } from '../../src/defaults.ts'
import { ByteQueue } from '../../src/link/byte-queue.ts'
import { createLink, type Link } from '../../src/link/link.ts'
import type { Channel } from '../../src/network/network.ts'

/** A link over a channel that the test plays: what comes, what is taken, and how it ends. */
export function linkOverFake(
  options: { tuning?: Partial<Tunables>; onFrame?: (link: Link, body: Uint8Array) => void } = {},
) {
  const manual = manualClock()
  const queue = new ByteQueue()
  const log: string[] = []
  const frames: number[] = []
  const sent: Uint8Array[] = []
  const state = { takes: true, unsentBytes: 0 }
  const channel = {
    remotePeer: 'other peer',
    remoteAddress: '/memory/other',
    direction: 'outbound',
    get unsentBytes() {
      return state.unsentBytes
    },
    listen: () => undefined,
    send(bytes: Uint8Array) {
      sent.push(bytes)
      if (!state.takes) state.unsentBytes += bytes.length
      return state.takes
    },
    pause: () => void log.push('pause'),
    resume: () => void log.push('resume'),
    async close() {
      log.push('close')
    },
    abort: () => void log.push('abort'),
  } as const satisfies Channel
  const driven = createLink({
    id: 'link',
    channel,
    remote: { agentId: 'other', peerId: 'other peer', offsetMs: 0 } as never,
    own: { peerId: 'own peer' } as never,
    queue,
    clock: manual,
    tunables: { ...DEFAULTS, ...options.tuning },
    events: {
      frame(link, body) {
        frames.push(body[0] as number)
        options.onFrame?.(link, body)
      },
      unblocked: () => void log.push('unblocked'),
      closed: (_, reason, destroyed) => void log.push(`${destroyed ? 'destroyed' : 'closed'} ${reason.code}`),
    },
  })
  return {
    link: driven.link,
    driven,
    state,
    log,
    frames,
    sent,
    advance: (ms: number) => manual.timeline.advance(ms),
    /** Frames of `size` bytes arrive in one piece; the first byte of each is its number. */
    arrive(count: number, size = 1) {
      const from = frames.length
      queue.push(Buffer.concat(Array.from({ length: count }, (_, i) => part(new Uint8Array(size).fill(from + i)))))
      driven.received()
    },
    /** Part of a frame. */
    arriveBytes(bytes: Uint8Array) {
      queue.push(bytes)
      driven.received()
    },
  }
}
