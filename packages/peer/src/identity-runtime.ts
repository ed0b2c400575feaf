import {
  type DocumentFile,
  fromBase64url,
  fromFile,
  HermesError,
  isHermesError,
  type PublicKey,
  type Revocation,
  signRevocation,
  toBase64url,
  trustTopic,
} from '@hermes-peer/protocol'
import type { Streaming } from './calls/streaming.ts'
import type { BuiltIn } from './calls/unqueued.ts'
import type { Directory } from './directory/directory.ts'
import { createStrangers } from './directory/strangers.ts'
import { checkRevocation } from './identity/authority.ts'
import { createIdentities, type Identities } from './identity/identities.ts'
import { createNotes } from './identity/notes.ts'
import { type OwnInstance, ownInstance } from './identity/own-instance.ts'
import { issuedOf } from './identity/own-keys.ts'
import { createRevocations, type Revocations } from './identity/revocations.ts'
import { createSerials } from './identity/serials.ts'
import type { Link } from './link/link.ts'
import type { Links } from './link/links.ts'
import { createInstances, type Instances } from './network/instances.ts'
import type { Gossip, Network, Verdict } from './network/network.ts'
import type { Settings } from './options.ts'
import type { Opened, Seams } from './seams.ts'
import { sweepEvery } from './sweep.ts'
import type { Telemetry } from './telemetry/events.ts'

/** Who this agent is, and who others are: keys, certificates, revocations, and what becomes of them while the peer runs. */
export interface IdentityRuntime {
  /** The agent key. */
  readonly key: PublicKey
  readonly network: Instances
  readonly identities: Identities
  readonly revocations: Revocations
  /** `hermes.revocations {after?}`: what is kept here, for every admitted agent. */
  readonly builtIn: BuiltIn
  /** A link is up: asks for the revocations of the other side, where it keeps others. */
  linked(link: Link): void
  /** The journal is open: nothing is judged before what it holds is known. */
  restore(): Promise<void>
  /** Takes part in the trust topic from now on. */
  start(): void
  /**
   * Makes a revocation of an own key, or takes one that was made elsewhere, acts by it and tells all others. Rejects with what makes
   * it worth nothing, with `NOT_ALLOWED` for a signer without the right, and with `INVALID_OPTION`.
   */
  revoke(what: { key: string; reason: string } | DocumentFile): Promise<{ peers: number }>
  stop(): void
}

/** The stages that a key which may not speak any more is cut off from. */
export interface IdentityStages {
  readonly links: Links
  readonly directory: Directory
  readonly streaming: Streaming
  /** Asks what every peer offers. */
  ask(link: Link, capability: string, input: unknown, options: { timeoutMs: number }): Promise<unknown>
  /** This agent's own key was revoked: nobody listens to it any more. */
  fallSilent(reason: HermesError): void
}

export interface IdentityRuntimeOptions {
  readonly settings: Settings
  readonly seams: Pick<Seams, 'clock' | 'keys'>
  readonly opened: Opened
  /** Over which everything of this agent goes. */
  readonly firstNetwork: Network
  readonly telemetry: Telemetry
  stages(): IdentityStages
}

/** Pages of revocations asked of one peer at a link-up: of 256 KiB each, all that it may keep. */
const MOST_PAGES = 64

export function createIdentityRuntime(options: IdentityRuntimeOptions): IdentityRuntime {
  const { settings, seams, opened, firstNetwork, telemetry, stages } = options
  const { agentId, network: networkName, tunables } = settings
  const { clock, keys } = seams
  const { trust, journal } = opened
  const key = opened.agentKey ?? opened.key.publicKey
  const report = (text: string): void => telemetry.emit('peer.notice', { text })
  const first: OwnInstance = ownInstance(opened.key, key, opened.certificates ?? [])
  const network = createInstances(first, firstNetwork, clock)
  const serials = createSerials({ clock, overlapMs: tunables.instanceOverlapMs })
  const notes = createNotes({ journal, report })
  const topic = trustTopic(networkName)
  const strangers = createStrangers({
    clock,
    windowMs: tunables.presenceWindowMs,
    perNeighbour: tunables.revocationStrangers,
    inAll: tunables.revocationStrangers,
  })
  let unsubscribe = (): void => undefined
  let stopSweeping = (): void => undefined

  const added = ({ agent_id, key: fingerprint, reason }: Revocation): void => {
    telemetry.emit('identity.revoked', { agentId: agent_id, fingerprint, reason })
    if (agent_id === agentId) {
      const mine = [key, network.current.key.publicKey].some((one) => one.fingerprint === fingerprint)
      if (mine) {
        const message = `key ${fingerprint} of this agent was revoked: ${reason}`
        stages().fallSilent(new HermesError('NOT_ALLOWED', { message }))
      }
      return
    }
    cut()
    stages().directory.recheck(agent_id)
  }
  const revocations = createRevocations({ network: networkName, trust, added, report })
  const identities = createIdentities({
    network: networkName,
    trust,
    keys,
    clock,
    tunables,
    serials,
    revoked: revocations.revoked,
  })

  const objectionTo = ({ remote }: Link): HermesError | undefined => {
    const reason = identities.objection(remote.identity, remote.meeting)
    return reason === undefined ? undefined : new HermesError('NOT_ALLOWED', { message: reason })
  }
  /** Ends links and streams of those who may not speak any more. */
  const cut = (): void => {
    const { links, streaming } = stages()
    streaming.cut(objectionTo)
    for (const link of [...links.all()]) {
      const reason = objectionTo(link)
      if (reason) link.destroy(reason)
    }
  }

  const receive = ({ data, from }: Gossip): Verdict => {
    try {
      const taken = revocations.take(data, () => strangers.take(from))
      // Others may be able to judge it.
      return taken === 'known' ? 'ignore' : 'accept'
    } catch (error) {
      const { code, message: reason } = HermesError.from(error)
      if (code === 'BUSY') return 'ignore'
      telemetry.emit('presence.refused', { code, reason })
      return code === 'EXPIRED' ? 'ignore' : 'reject'
    }
  }

  const askFor = async (link: Link): Promise<void> => {
    let after: string | undefined
    for (let page = 0; page < MOST_PAGES; page++) {
      const input = after === undefined ? {} : { after }
      const output = await stages().ask(link, 'hermes.revocations', input, { timeoutMs: tunables.manifestTimeoutMs })
      const { revocations: told, last } = (output ?? {}) as { revocations?: unknown; last?: unknown }
      if (!Array.isArray(told)) return
      for (const text of told as unknown[]) take(typeof text === 'string' ? fromBase64url(text) : undefined, link)
      if (typeof last !== 'string' || last <= (after ?? '')) return
      after = last
    }
  }

  /** One of those that a neighbour keeps: what is news here is news to those around, too. */
  const take = (document: Uint8Array | undefined, { remote }: Link): void => {
    if (!document) return
    try {
      if (revocations.take(document, () => strangers.take(remote.peerId)) === 'new') {
        void network.publish(topic, document).catch(() => undefined)
      }
    } catch (error) {
      if (!isHermesError(error)) throw error
      telemetry.emit('presence.refused', { code: error.code, reason: error.message })
    }
  }

  const ownRevocation = (what: { key: string; reason: string }): Uint8Array => {
    checkRevocation(what)
    const { agentSigner, certificates = [] } = opened
    if (!agentSigner) {
      throw new HermesError('INVALID_OPTION', {
        message: 'revoke: the agent key is not at hand here',
        hint: 'Make a revocation with makeRevocation() where it is, and give that.',
        details: { field: 'key' },
      })
    }
    const { key: fingerprint, reason } = what
    return signRevocation(
      {
        network: networkName,
        agent_id: agentId,
        key: fingerprint,
        serial: clock.now(),
        reason,
        certificates: issuedOf(certificates),
      },
      agentSigner,
    )
  }

  return {
    key,
    network,
    identities,
    revocations,
    builtIn(input) {
      const after = (input as { after?: unknown } | null)?.after
      const { documents, last } = revocations.page(typeof after === 'string' ? after : '')
      return { revocations: documents.map(toBase64url), ...(last === undefined ? {} : { last }) }
    },
    linked(link) {
      const theirs = link.remote.revocations
      if (theirs === undefined || theirs === revocations.digest()) return
      askFor(link).catch((error: unknown) => {
        const { code, message: reason } = HermesError.from(error)
        telemetry.emit('presence.refused', { code, reason: `revocations of ${link.remote.agentId}: ${reason}` })
      })
    },
    async restore() {
      await serials.load(notes)
      await revocations.load(notes)
      await trust.restore?.({ notes, revoked: revocations.revoked })
    },
    start() {
      unsubscribe = network.subscribe(topic, receive)
      stopSweeping = sweepEvery(clock, tunables.presenceMs, [{ sweep: cut }])
    },
    async revoke(what) {
      const document = 'document' in what ? fromFile(what) : ownRevocation(what)
      const taken = revocations.take(document, () => true)
      if (taken === 'unjudged') {
        throw new HermesError('NOT_ALLOWED', {
          message: 'the revocation is signed by a key that may not revoke this one, or too many are kept',
        })
      }
      return { peers: await network.publish(topic, document) }
    },
    stop() {
      stopSweeping()
      unsubscribe()
    },
  }
}
