import { createHash } from 'node:crypto'
import {
  HermesError,
  type Manifest,
  type Presence,
  peerIdOf,
  type SignedDocument,
  type SigningKey,
  signingKey,
  signManifest,
} from '@hermes-peer/protocol'
import { manualClock } from '@hermes-peer/testkit'
import type { WatchChange } from '../../src/api.ts'
import { DEFAULTS, type Tunables } from '../../src/defaults.ts'
import { createDirectory, type FindOptions } from '../../src/directory/directory.ts'
import type { HeardReport } from '../../src/directory/presence.ts'
import { createSourceHealth } from '../../src/directory/sources/health.ts'
import type { DirectorySource } from '../../src/directory/sources/source.ts'
import { allowList } from '../../src/identity/allow-list.ts'
import { createIdentities, type Identity } from '../../src/identity/identities.ts'
import { createKeyCheck } from '../../src/identity/key-check.ts'
import type { Trust } from '../../src/identity/trust.ts'
import type { Link } from '../../src/link/link.ts'
import type { Links, LinkTarget } from '../../src/link/links.ts'
import type { FoundPeer } from '../../src/network/network.ts'
import { createTelemetry } from '../../src/telemetry/telemetry.ts'
import { capabilityEntry } from '../routing/support.ts'

export function keyNamed(name: string): SigningKey {
  return signingKey(new Uint8Array(createHash('sha256').update(name).digest()))
}

/** That agent with its own key (or that of another), and no certificate. */
export function identityNamed(agentId: string, as = agentId): Identity {
  const key = keyNamed(as).publicKey
  return { agentId, agentKey: key, signer: key, instance: undefined, issued: [] }
}

export const peerIdNamed = (name: string) => peerIdOf(keyNamed(name).publicKey.raw)

export function manifestOf(
  agentId: string,
  capabilities: readonly string[],
  serial = 1,
  more: Partial<Manifest> = {},
): SignedDocument {
  const key = keyNamed(agentId)
  return signManifest(
    {
      agent_id: agentId,
      key: key.publicKey.raw,
      network: 'default',
      serial,
      issued_at: 0,
      expires_at: Number.MAX_SAFE_INTEGER,
      description: '',
      capabilities: capabilities.map((name) => capabilityEntry({ name })),
      ...more,
    },
    key,
  )
}

/** A presence report of an agent as if it had been verified. */
export function report(agentId: string, more: Partial<Presence> & { as?: string } = {}): HeardReport {
  const { as = agentId, ...rest } = more
  const key = keyNamed(as).publicKey
  return {
    identity: identityNamed(agentId, as),
    presence: {
      agent_id: agentId,
      key: key.raw,
      network: 'default',
      epoch: 100,
      counter: 0,
      state: 'up',
      addresses: [`/ip4/127.0.0.1/tcp/4001/p2p/${agentId}`],
      capabilities: ['work'],
      load: 0,
      queue_depth: 0,
      success_rate_15m: 1,
      manifest_serial: 1,
      ...rest,
    },
  }
}

export const everyone: Trust = {
  judge: () => ({ admitted: true }),
  known: () => undefined,
  describe: () => 'everyone',
}

export const only = (...names: string[]): Trust =>
  allowList(names.map((agent_id) => ({ agent_id, fingerprint: keyNamed(agent_id).publicKey.fingerprint })))

/** A directory whose links, DHT and other agents are the test's. */
export function directing(options: { trust?: Trust; tuning?: Partial<Tunables> } = {}) {
  const clock = manualClock()
  const tunables = { ...DEFAULTS, ...options.tuning }
  const telemetry = createTelemetry({ clock })
  const open = new Map<string, Link>()
  /** Addresses at which an agent answers. */
  const reachable = new Map<string, string>()
  const manifests = new Map<string, SignedDocument>()
  /** Agents whose dial takes 2 s, and fails. */
  const hanging = new Set<string>()
  const log = {
    dials: [] as LinkTarget[],
    lookups: 0,
    asked: [] as string[],
    newcomers: 0,
    duplicates: [] as HermesError[],
  }
  let found: readonly FoundPeer[] = []
  let asking = async (_: string): Promise<void> => undefined

  const linkOf = (
    agentId: string,
    more: { epoch?: number; digest?: string; direction?: 'inbound' | 'outbound' } = {},
  ): Link =>
    ({
      direction: more.direction ?? 'outbound',
      heardAt: clock.monotonic(),
      remote: {
        agentId,
        identity: identityNamed(agentId),
        key: keyNamed(agentId).publicKey,
        peerId: peerIdNamed(agentId),
        address: reachable.get(agentId) ?? '/ip4/127.0.0.1/tcp/9',
        epoch: more.epoch ?? 100,
        manifestDigest: more.digest ?? 'digest 1',
      },
    }) as unknown as Link

  const links = {
    get: (agentId: string) => open.get(agentId),
    async connect(target: LinkTarget) {
      log.dials.push(target)
      // Never at once: a dial takes at least a turn.
      await Promise.resolve()
      if (target.agentId !== undefined && hanging.has(target.agentId))
        await new Promise<void>((resolve) => clock.after(2000, resolve))
      for (const [agentId, address] of reachable) {
        const meant = target.agentId === agentId || target.peerId === peerIdNamed(agentId)
        if (meant && target.addresses.includes(address)) return up(agentId)
      }
      throw new HermesError('PEER_UNREACHABLE', { message: `nobody at ${target.addresses.join()}` })
    },
  } as unknown as Links

  /** What becomes of a question: an answer, unless it is told otherwise. */
  let outage: string | undefined
  const source = {
    name: 'test',
    leased: true,
    async *find() {
      log.lookups++
      if (outage !== undefined) throw new HermesError('DIRECTORY_UNREACHABLE', { message: outage })
      yield* found
    },
  } as unknown as DirectorySource

  const directory = createDirectory({
    agentId: 'me',
    ownKey: keyNamed('me').publicKey,
    epoch: 50,
    networkName: 'default',
    sources: [source],
    health: createSourceHealth(telemetry),
    links,
    identities: createIdentities({
      network: 'default',
      trust: options.trust ?? everyone,
      keys: createKeyCheck(),
      clock,
      tunables,
    }),
    clock,
    tunables,
    telemetry,
    async askManifest(agentId) {
      log.asked.push(agentId)
      const document = manifests.get(agentId)
      await asking(agentId)
      if (!document) throw new HermesError('TIMEOUT')
      return document
    },
    newcomer: () => void log.newcomers++,
    duplicate: (error) => void log.duplicates.push(error),
  })

  /** A link to an agent comes up. */
  const up = (agentId: string, more: Parameters<typeof linkOf>[1] = {}): Link => {
    const link = linkOf(agentId, more)
    open.set(agentId, link)
    directory.linked(link)
    return link
  }
  const down = (agentId: string, graceful = false) => {
    open.delete(agentId)
    directory.unlinked(agentId, graceful)
  }
  const watch = (query: Parameters<typeof directory.watch>[0]) => {
    const changes: string[] = []
    const stop = directory.watch(query, ({ type, agentId }: WatchChange) => changes.push(`${agentId} ${type}`))
    return { changes, stop }
  }
  const find = (query: Parameters<typeof directory.find>[0], more: Partial<FindOptions> = {}) =>
    clock.timeline.runUntil(directory.find(query, { signal: new AbortController().signal, ...more }))
  directory.start()
  return {
    clock,
    directory,
    telemetry,
    reachable,
    manifests,
    hanging,
    log,
    up,
    down,
    watch,
    find,
    advance: (ms: number) => clock.timeline.advance(ms),
    /** What happens between the question for a manifest and its answer. */
    whileAsking: (what: typeof asking) => {
      asking = what
    },
    /** The source cannot be reached for that reason; without one it can. */
    cutOff: (reason?: string) => {
      outage = reason
    },
    setProviders: (...peers: FoundPeer[]) => {
      found = peers
    },
  }
}
