import { HermesError, type PublicKey } from '@hermes-peer/protocol'
import type { Streaming } from './calls/streaming.ts'
import type { Clock, Timer } from './clock.ts'
import type { Tunables } from './defaults.ts'
import type { Directory } from './directory/directory.ts'
import type { PresenceBeacon } from './directory/presence.ts'
import { type OwnInstance, ownInstance } from './identity/own-instance.ts'
import type { Link } from './link/link.ts'
import type { Links } from './link/links.ts'
import type { OwnManifest } from './manifest/own-manifest.ts'
import { detached } from './network/detached.ts'
import type { Instances } from './network/instances.ts'
import type { Outside } from './outside.ts'
import type { InstanceFiles, Opened } from './seams.ts'
import type { Telemetry } from './telemetry/events.ts'

/** The key that a peer runs under from now on. */
export interface Rotated {
  /** `sha256:…` of the new instance key. */
  readonly fingerprint: string
  readonly serial: number
}

/** Changes the key that this peer runs under, while it runs. */
export interface Rotation {
  /**
   * Makes before it breaks: a second node with a new key starts and is announced, every linked agent is linked to it, and what
   * still goes over the old one ends there. Resolves once new calls go over the new key.
   */
  rotate(files: InstanceFiles | undefined): Promise<Rotated>
  start(): void
  stop(): void
}

export interface RotationOptions {
  readonly agentId: string
  /** The agent key. */
  readonly key: PublicKey
  readonly opened: Opened
  readonly network: Instances
  readonly outside: Outside
  readonly links: Links
  readonly directory: Directory
  readonly streaming: Streaming
  readonly manifest: OwnManifest
  readonly beacon: PresenceBeacon
  readonly clock: Clock
  readonly tunables: Tunables
  readonly telemetry: Telemetry
  /** Makes the new addresses known to those of this machine. */
  announced(): void
}

/** Agents that are linked anew at one time. */
const AT_ONCE = 16
/** How often it is looked whether the certificate nears its end: a timer cannot wait for 90 days. */
const LOOK_MS = 60 * 60 * 1000

export function createRotation(options: RotationOptions): Rotation {
  const { agentId, key, opened, network, outside, links, directory, streaming } = options
  const { manifest, beacon, clock, tunables, telemetry } = options
  let running: Promise<Rotated> | undefined
  let looking: Timer | undefined
  const draining = new Set<Timer>()
  let stopped = false

  const notice = (text: string): void => telemetry.emit('peer.notice', { text })

  const rotate = async (files: InstanceFiles | undefined): Promise<Rotated> => {
    const { rotation } = opened
    if (!rotation) {
      throw new HermesError('INVALID_OPTION', { message: 'rotate: this peer’s keys are not its own to change' })
    }
    const former = network.current
    const next = await rotation.next(former.serial + 1, files)
    const instance = ownInstance(next.key, key, next.certificates)
    if (instance.serial <= former.serial) {
      throw new HermesError('INVALID_CERTIFICATE', {
        message: `rotate: the certificate has serial ${instance.serial}, this peer runs under ${former.serial}: others would refuse it`,
        hint: 'Give the later certificate, or have one made with a higher serial.',
        details: { field: 'certificate' },
      })
    }
    await network.prepare(instance, detached(next.network, outside))
    network.use(instance)
    manifest.renew()
    options.announced()
    await linkAnew(former)
    void beacon.announce()
    telemetry.emit('identity.rotated', {
      agentId,
      fingerprint: instance.key.publicKey.fingerprint,
      serial: instance.serial,
    })
    drain(former, clock.monotonic() + tunables.instanceDrainMs, async () => {
      await next.inherit?.()
      options.announced()
      await beacon.announce()
    })
    return { fingerprint: instance.key.publicKey.fingerprint, serial: instance.serial }
  }

  /** Whoever cannot be dialled hears of the new key by presence, and dials. */
  const linkAnew = async (former: OwnInstance): Promise<void> => {
    const old: Link[] = [...links.all()].filter(({ own, state }) => own === former && state === 'open')
    for (let at = 0; at < old.length && !stopped; at += AT_ONCE) {
      const dials = old.slice(at, at + AT_ONCE).map(({ remote: { agentId: other, ...met } }) => {
        // It may have changed its key too.
        const entry = directory.get(other)
        const peerId = entry?.peerId ?? met.peerId
        const addresses = entry && entry.addresses.length > 0 ? entry.addresses : [met.address]
        return links.connect({ agentId: other, peerId, addresses, renew: true }).catch(() => undefined)
      })
      await Promise.all(dials)
    }
  }

  const drain = (former: OwnInstance, deadline: number, then: () => Promise<void>): void => {
    const used = [...links.all()].filter(({ own }) => own === former)
    const late = clock.monotonic() >= deadline
    if (!late && (used.length > 0 || streaming.uses(former))) {
      const timer = clock.after(tunables.presenceMs / 2, () => {
        draining.delete(timer)
        void linkAnew(former)
        drain(former, deadline, then)
      })
      draining.add(timer)
      return
    }
    const reason = new HermesError('PEER_UNREACHABLE', {
      message: `${agentId} has changed its key, and the time for what went on under the old one is over`,
    })
    streaming.cut(({ own }) => (own === former ? reason : undefined))
    for (const link of used) link.close(reason)
    network
      .retire(former)
      .then(() => (stopped ? undefined : then()))
      .catch((error: Error) => notice(`what the old key’s node held could not be taken over: ${error.message}`))
      .finally(() => telemetry.emit('identity.retired', { agentId, fingerprint: former.key.publicKey.fingerprint }))
  }

  const begin = (files: InstanceFiles | undefined): Promise<Rotated> => {
    if (stopped) return Promise.reject(new HermesError('STOPPED'))
    if (running !== undefined) {
      return Promise.reject(new HermesError('BUSY', { message: 'rotate: a rotation is under way', source: 'sender' }))
    }
    running = rotate(files).finally(() => {
      running = undefined
    })
    return running
  }

  const look = (): void => {
    looking = clock.after(Math.min(LOOK_MS, tunables.instanceRenewMs / 4), look)
    const { notAfter, serial } = network.current
    if (notAfter === undefined || running !== undefined || notAfter - clock.now() > tunables.instanceRenewMs) return
    const end = new Date(notAfter).toISOString()
    if (!opened.rotation?.alone) {
      notice(
        `certificate ${serial} of this instance ends at ${end}: make the next one where the agent key is, and give it to rotate()`,
      )
      return
    }
    begin(undefined).catch((error: Error) => {
      notice(`the key of this instance could not be changed: ${error.message}; its certificate ends at ${end}`)
    })
  }

  return {
    rotate: begin,
    start: look,
    stop() {
      stopped = true
      for (const timer of [looking, ...draining]) clock.clear(timer)
    },
  }
}
