import { callerAddress } from './address.ts'
import { type ConnectionEnd, connectionLost, createEnd, type OwnedEnd } from './connection-end.ts'
import type { Fabric } from './fabric.ts'
import type { Host } from './host.ts'
import { createLane, type HoldReason, type Lane } from './lane.ts'
import type { Spike } from './paths.ts'

/** A transport connection between two peers, carrying channels and gossip in both directions. */
export interface Connection {
  readonly id: number
  readonly ends: readonly [ConnectionEnd, ConnectionEnd]
  /** Whether bytes pass: both ends live, it is not half-open, and no partition lies between. */
  readonly usable: boolean
  /** Breaks off once this many more bytes of payload have arrived, in both directions together; 0 at once. */
  cutAfter(bytes: number): void
  /** From now on bytes vanish both ways and neither end is told. */
  silence(): void
  /** Keeps back what would arrive at one peer, or at both. */
  hold(reason: HoldReason, at?: string): void
  release(reason: HoldReason, at?: string): void
}

/** Makes a connection; both hosts are told, the dialler first. */
export function connect(fabric: Fabric, dialler: Host, dialled: Host, dialledAddress: string): ConnectionEnd {
  const connection = new MemoryConnection(fabric, dialler, dialled, dialledAddress)
  const [here, there] = connection.ends
  fabric.connections.add(connection)
  fabric.trace?.add(`${fabric.timeline.now()} connection ${connection.id} ${dialler.peerId} ${dialled.peerId}`)
  dialler.joined(here)
  if (there.alive) dialled.joined(there)
  return here
}

/** Connections of which both ends live, between two peers. */
export function connectionsBetween(fabric: Fabric, a: string, b: string): Connection[] {
  return [...fabric.connections].filter(({ ends: [one, other] }) => {
    const [from, to] = [one.host.peerId, other.host.peerId]
    return one.alive && other.alive && ((from === a && to === b) || (from === b && to === a))
  })
}

/** What is sent again after a partition arrives some time after its end, ms. */
const RESEND_MS = 300

class MemoryConnection implements Connection {
  readonly id: number
  readonly ends: readonly [OwnedEnd, OwnedEnd]
  readonly #fabric: Fabric
  #silent = false
  /** Payload bytes that may still arrive. */
  #allowance = Number.POSITIVE_INFINITY
  #cancelGivingUp: (() => void) | undefined
  /** Faults that have been counted: each counts once for a connection. */
  readonly #counted = new Set<HoldReason | 'halfOpen'>()
  #countedSpike: Spike | undefined

  constructor(fabric: Fabric, dialler: Host, dialled: Host, dialledAddress: string) {
    this.#fabric = fabric
    this.id = fabric.nextNumber('connection')
    const from = callerAddress(dialler.address, fabric.nextNumber('port'), dialler.peerId)
    const shared = { connection: this, fabric, onDeath: () => this.#settle() }
    const here = createEnd({
      ...shared,
      host: dialler,
      remote: dialled,
      remoteAddress: dialledAddress,
      direction: 'outbound',
      out: this.#lane(),
    })
    const there = createEnd({
      ...shared,
      host: dialled,
      remote: dialler,
      remoteAddress: from,
      direction: 'inbound',
      out: this.#lane(),
    })
    here.join(there)
    there.join(here)
    this.ends = [here, there]
  }

  get usable(): boolean {
    const [a, b] = this.ends
    return a.alive && b.alive && !this.#silent && !this.#fabric.paths.separated(a.host.peerId, b.host.peerId)
  }

  cutAfter(bytes: number): void {
    if (bytes > 0) this.#allowance = bytes
    else this.#fabric.timeline.schedule(0, () => this.#breakOff())
  }

  silence(): void {
    this.#silent = true
    for (const end of this.ends) {
      if (end.queuedBytes > 0) this.#swallow()
      end.out.clear()
    }
  }

  hold(reason: HoldReason, at?: string): void {
    this.#counted.delete(reason)
    for (const end of this.ends) if (at === undefined || end.remotePeer === at) end.out.hold(reason)
    if (reason !== 'partition') return
    this.#cancelGivingUp ??= this.#fabric.timeline.schedule(this.#fabric.settings.brokenAfterMs, () =>
      this.#failBoth('timed out'),
    )
  }

  release(reason: HoldReason, at?: string): void {
    for (const end of this.ends) if (at === undefined || end.remotePeer === at) end.out.release(reason)
    if (reason !== 'partition') return
    this.#cancelGivingUp?.()
    this.#cancelGivingUp = undefined
  }

  #lane(): Lane {
    const { timeline, random } = this.#fabric
    return createLane(timeline, {
      delay: () => this.#delay(),
      swallows: () => this.#silent && this.#swallow(),
      admit: (bytes) => {
        const admitted = Math.min(bytes, this.#allowance)
        this.#allowance -= admitted
        this.#fabric.trace?.add(`${timeline.now()} arrival ${this.id} ${admitted}`)
        return admitted
      },
      exhausted: () => this.#allowance === 0,
      breakOff: () => this.#breakOff(),
      heldUp: (reason) => this.#count(reason),
      resendDelay: () => random.between(0, RESEND_MS),
    })
  }

  #delay(): number {
    const { paths, hits } = this.#fabric
    const [a, b] = this.ends.map((end) => end.host.peerId) as [string, string]
    const spike = paths.spike(a, b)
    if (spike && spike !== this.#countedSpike) {
      this.#countedSpike = spike
      hits.count('delay')
    }
    return paths.latency(a, b) + (spike?.extraMs ?? 0)
  }

  #swallow(): true {
    this.#count('halfOpen')
    return true
  }

  #count(kind: HoldReason | 'halfOpen'): void {
    if (this.#counted.has(kind)) return
    this.#counted.add(kind)
    this.#fabric.hits.count(kind)
  }

  #settle(): void {
    if (this.ends.some((end) => end.alive)) return
    this.#cancelGivingUp?.()
    for (const end of this.ends) end.out.close()
    this.#fabric.connections.delete(this)
  }

  #breakOff(): void {
    if (!this.ends.some((end) => end.alive)) return
    this.#fabric.hits.count('cut')
    this.#failBoth('was reset')
  }

  #failBoth(how: string): void {
    for (const end of this.ends) end.fail(connectionLost(end.remotePeer, how))
  }
}
