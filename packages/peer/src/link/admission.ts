import { HermesError } from '@hermes-peer/protocol'
import type { Clock, Timer } from '../clock.ts'
import type { Tunables } from '../defaults.ts'

/** Bounds handshakes under way, in all and per address; further ones wait for a place, as long as a handshake may take. */
export interface HandshakeGate {
  /** Calls `enter` once there is a place, or `refused`; returns what to call when the handshake is over or given up. */
  request(address: string, ends: { enter(): void; refused(error: HermesError): void }): () => void
  close(): void
}

interface Waiting {
  host: string
  enter(): void
  refused(error: HermesError): void
  timer: Timer
}

export function createHandshakeGate(options: { clock: Clock; tunables: Tunables; perAddress: boolean }): HandshakeGate {
  const { clock, tunables, perAddress } = options
  const active = new Map<string, number>()
  let total = 0
  const waiting = new Set<Waiting>()

  const hasPlace = (host: string) =>
    total < tunables.pendingHandshakes &&
    (!perAddress || (active.get(host) ?? 0) < tunables.pendingHandshakesPerAddress)

  const take = (host: string): void => {
    total++
    active.set(host, (active.get(host) ?? 0) + 1)
  }
  const release = (host: string): void => {
    total--
    const left = (active.get(host) ?? 1) - 1
    if (left > 0) active.set(host, left)
    else active.delete(host)
    for (const next of waiting) {
      if (!hasPlace(next.host)) continue
      waiting.delete(next)
      clock.clear(next.timer)
      take(next.host)
      next.enter()
    }
  }

  return {
    request(address, { enter, refused }) {
      const host = hostOf(address)
      let state: 'waiting' | 'active' | 'over' = 'active'
      const leave = () => {
        if (state === 'active') release(host)
        if (state === 'waiting') {
          waiting.delete(entry)
          clock.clear(entry.timer)
        }
        state = 'over'
      }
      const entry: Waiting = {
        host,
        enter: () => {
          state = 'active'
          enter()
        },
        refused,
        timer: undefined as unknown as Timer,
      }
      if (hasPlace(host)) {
        take(host)
        enter()
      } else if (waiting.size >= tunables.waitingHandshakes) {
        state = 'over'
        refused(new HermesError('BUSY', { message: 'too many handshakes are waiting' }))
      } else {
        state = 'waiting'
        entry.timer = clock.after(tunables.handshakeTimeoutMs, () => {
          state = 'over'
          waiting.delete(entry)
          refused(new HermesError('BUSY', { message: 'no place for a handshake in time' }))
        })
        waiting.add(entry)
      }
      return leave
    },
    close() {
      for (const entry of waiting) clock.clear(entry.timer)
      waiting.clear()
    },
  }
}

/** The address without port and peer id: what one machine shares. */
function hostOf(address: string): string {
  const [, protocol, host] = address.split('/')
  return `${protocol}/${host}`
}
