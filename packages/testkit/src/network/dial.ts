import type { DialTarget } from 'hermes-peer'
import { parseAddress } from './address.ts'
import { connect } from './connection.ts'
import type { ConnectionEnd } from './connection-end.ts'
import type { Fabric } from './fabric.ts'
import { endTo, type Host } from './host.ts'
import { type Tried, unreachable } from './unreachable.ts'

/**
 * Tries the addresses one after another until the peer answers.
 * Rejects with `PEER_UNREACHABLE`, or with the signal's reason.
 */
export async function dial(
  fabric: Fabric,
  host: Host,
  target: DialTarget,
  signal: AbortSignal,
): Promise<ConnectionEnd> {
  const { peerId } = target
  const addresses = peerId === undefined ? target.addresses.slice(0, 1) : target.addresses
  const tried: Tried[] = []
  for (const address of new Set(addresses)) {
    const result = await attempt({ fabric, host, address, peerId, signal })
    if (typeof result !== 'string') return result
    tried.push({ address, reason: result })
  }
  throw unreachable(peerId, tried)
}

interface Attempt {
  readonly fabric: Fabric
  readonly host: Host
  readonly address: string
  readonly peerId: string | undefined
  readonly signal: AbortSignal
}

/** Round trips until a connection is encrypted and can carry channels: TCP, Noise, the choice of protocols. */
const ROUND_TRIPS = 3

/** The end of a new connection, or the reason why there is none. */
async function attempt({ fabric, host, address, peerId, signal }: Attempt): Promise<ConnectionEnd | string> {
  const parsed = parseAddress(address)
  if (!parsed) return 'invalid address'
  const expected = peerId ?? parsed.peerId
  if (parsed.peerId !== undefined && parsed.peerId !== expected) return 'wrong peer'
  if (expected === host.peerId || fabric.listeners.get(parsed.transport) === host) return 'own address'

  const { paths, settings, timeline, random } = fabric
  const there = fabric.listeners.get(parsed.transport)
  const roundTrip = 2 * paths.latency(host.peerId, there?.peerId ?? parsed.transport)
  const spike = there ? (paths.spike(host.peerId, there.peerId)?.extraMs ?? 0) : 0
  const began = timeline.now()
  if (!there) return inTime(fabric, roundTrip, signal, () => 'refused')

  const setUp = ROUND_TRIPS * (roundTrip + spike) + random.between(settings.connectMs.min, settings.connectMs.max)
  const outcome = await inTime(fabric, Math.min(setUp, settings.dialTimeoutMs), signal, () => {
    if (!host.running) return 'stopped'
    if (fabric.listeners.get(parsed.transport) !== there) return 'refused'
    if (setUp > settings.dialTimeoutMs || isSilent(fabric, host, there)) return 'timeout'
    if (expected !== undefined && there.peerId !== expected) return 'wrong peer'
    // Another caller's dial may have come first. A connection that the other side has made meanwhile stays beside this one.
    const earlier = endTo(host, there.peerId)
    return earlier?.direction === 'outbound' ? earlier : connect(fabric, host, there, named(address, there.peerId))
  })
  if (outcome !== 'timeout') return outcome
  return inTime(fabric, began + settings.dialTimeoutMs - timeline.now(), signal, () => 'timeout')
}

/** Whether packets between them are lost, or one of them does not read. */
function isSilent(fabric: Fabric, a: Host, b: Host): boolean {
  return fabric.paths.separated(a.peerId, b.peerId) || fabric.stalled.has(a.peerId) || fabric.stalled.has(b.peerId)
}

function named(address: string, peerId: string): string {
  return address.includes('/p2p/') ? address : `${address}/p2p/${peerId}`
}

/** What `run` returns after a time; called as the world does, not in the caller's async context. */
function inTime<T>(fabric: Fabric, ms: number, signal: AbortSignal, run: () => T): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const giveUp = () => {
      cancel()
      reject(signal.reason)
    }
    const cancel = fabric.timeline.schedule(ms, () => {
      signal.removeEventListener('abort', giveUp)
      resolve(run())
    })
    signal.addEventListener('abort', giveUp, { once: true })
  })
}
