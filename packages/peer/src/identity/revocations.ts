import {
  fingerprintOf,
  fromBase64url,
  HermesError,
  openRevocation,
  publicKey,
  type Revocation,
  sha256Hex,
  toBase64url,
  utf8,
} from '@hermes-peer/protocol'
import type { Notes } from './notes.ts'
import type { Claim, Trust } from './trust.ts'

/** The reason for which a key of an agent was revoked; undefined when it was not. */
export type Revoked = (agentId: string, fingerprint: string) => string | undefined

/** What becomes of a revocation: kept now, kept before, or not for this peer to judge. */
export type Taken = 'new' | 'known' | 'unjudged'

/** Keys that must not speak any more. They are kept for ever, within bounds that no stranger can fill. */
export interface Revocations {
  readonly revoked: Revoked
  load(notes: Notes): Promise<void>
  /**
   * Judges a revocation and keeps it. `stranger` says whether one more by a key that is not on record may be looked at. Throws
   * what makes it worth nothing: `BAD_SIGNATURE`, `MALFORMED`, `WRONG_NETWORK`, …
   */
  take(document: Uint8Array, stranger: () => boolean): Taken
  /** Names the set that is kept; undefined: it is empty. */
  digest(): string | undefined
  /** Some of the documents, in the order of their names, after that name; `last` is the name to go on from, if there are more. */
  page(after: string): { documents: readonly Uint8Array[]; last: string | undefined }
}

export interface RevocationsOptions {
  readonly network: string
  readonly trust: Trust
  /** One more key is revoked from now on. */
  added(revocation: Revocation): void
  report(text: string): void
}

interface Kept {
  readonly document: Uint8Array
  readonly reason: string
}

/** In all; and of one agent those that its own key has signed: more is not needed by who rotates each week for a year. */
const MOST = 10_000
const MOST_OF_AGENT = 64
const PREFIX = 'revoked:'
const PAGE_BYTES = 256 * 1024

export function createRevocations({ network, trust, added, report }: RevocationsOptions): Revocations {
  const kept = new Map<string, Kept>()
  /** By agent: those that it has signed itself. */
  const own = new Map<string, number>()
  let notes: Notes | undefined
  let digest: string | undefined
  let full = false

  const nameOf = (agentId: string, fingerprint: string) => `${agentId} ${fingerprint}`
  const put = (revocation: Revocation, document: Uint8Array): void => {
    const { agent_id, key, reason, signer } = revocation
    kept.set(nameOf(agent_id, key), { document, reason: reason || 'no reason was given' })
    if (trust.mayRevoke?.(signer) !== true) own.set(agent_id, (own.get(agent_id) ?? 0) + 1)
    digest = undefined
  }

  /** Whether that key may revoke a key of that agent. */
  const mayRevoke = ({ agent_id, signer, certificates }: Revocation): boolean => {
    if (trust.mayRevoke?.(signer) === true) return true
    const fingerprint = fingerprintOf(signer)
    if (trust.known(agent_id) === fingerprint) return true
    const claim: Claim = {
      agentId: agent_id,
      key: signer,
      fingerprint,
      issued: certificates ?? [],
      met: 'gossip',
      chosen: false,
    }
    return trust.judge(claim).admitted
  }

  return {
    revoked: (agentId, fingerprint) => (kept.size === 0 ? undefined : kept.get(nameOf(agentId, fingerprint))?.reason),
    async load(from) {
      notes = from
      for await (const [name, value] of from.entries(PREFIX)) {
        const document = typeof value === 'string' ? fromBase64url(value) : undefined
        try {
          // It was judged when it came: trust may know less of that agent now.
          if (document && kept.size < MOST) put(openRevocation(document), document)
        } catch (error) {
          report(`identity: the record ${name} cannot be read: ${(error as Error).message}`)
        }
      }
    },
    take(document, stranger) {
      const revocation = openRevocation(document, (raw, agentId) => {
        const onRecord = trust.mayRevoke?.(raw) === true || trust.known(agentId) === fingerprintOf(raw)
        if (!onRecord && !stranger()) throw new HermesError('BUSY', { message: 'too many revocations by strangers' })
        return publicKey(raw)
      })
      const { agent_id, key, signer } = revocation
      if (revocation.network !== network) {
        throw new HermesError('WRONG_NETWORK', { message: `a revocation for network ${revocation.network}` })
      }
      if (kept.has(nameOf(agent_id, key))) return 'known'
      if (!mayRevoke(revocation)) return 'unjudged'
      const crowded = trust.mayRevoke?.(signer) !== true && (own.get(agent_id) ?? 0) >= MOST_OF_AGENT
      if (crowded || kept.size >= MOST) {
        if (!full) report(`identity: a revocation for ${agent_id} is not kept, as there are too many`)
        full = true
        return 'unjudged'
      }
      put(revocation, document)
      notes?.keep(`${PREFIX}${nameOf(agent_id, key)}`, toBase64url(document))
      added(revocation)
      return 'new'
    },
    digest() {
      if (kept.size === 0) return undefined
      digest ??= sha256Hex(
        utf8(
          [...kept.values()]
            .map(({ document }) => sha256Hex(document))
            .sort()
            .join('\n'),
        ),
      )
      return digest
    },
    page(after) {
      const documents: Uint8Array[] = []
      let bytes = 0
      let last: string | undefined
      for (const name of [...kept.keys()].sort()) {
        if (name <= after) continue
        const { document } = kept.get(name) as Kept
        bytes += document.length
        if (bytes > PAGE_BYTES && last !== undefined) return { documents, last }
        documents.push(document)
        last = name
      }
      return { documents, last: undefined }
    },
  }
}
