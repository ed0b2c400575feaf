import { equalBytes, HermesError, type Issued, isHermesError, openIssued, type PublicKey } from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import { createCertificateReader } from './certificate-reader.ts'
import type { KeyCheck } from './key-check.ts'
import type { Membership } from './membership.ts'
import type { Notes } from './notes.ts'
import type { Revoked } from './revocations.ts'
import { ADMITTED, type Claim, type Judgement, mismatch, notAllowed, type Trust } from './trust.ts'

export interface OrganisationOptions {
  /** The key of the organisation; everything else follows from it. */
  readonly key: PublicKey
  readonly network: string
  readonly clock: Clock
  /** How far clocks may differ, ms. */
  readonly toleranceMs: number
  readonly keys: KeyCheck
}

/** What is on record of an agent that has proven itself: its key is the only one that speaks for it until then. */
interface Member {
  readonly key: string
  /** Of its certificate: an older one of the same key is refused, as a team or a role may have been taken away since. */
  readonly serial: number
  /** Wall clock, ms: when its certificate runs out. */
  readonly until: number
  readonly team: string
  readonly roles: readonly string[]
}

/** Members on record; further ones are refused, none is forgotten while its certificate holds. */
const MOST = 10_000
const PREFIX = 'member:'

/**
 * Admits the agents that an organisation has certified, itself or through the key of a team. One agent id keeps its key: another
 * key is admitted only once the first was revoked, or its certificate has run out.
 */
export function organisation(options: OrganisationOptions): Trust {
  const { key, network, clock, toleranceMs, keys } = options
  const read = createCertificateReader()
  const members = new Map<string, Member>()
  let notes: Notes | undefined
  let revoked: Revoked = () => undefined

  const open = ({ agentId, key: raw, issued = [] }: Claim): Issued => {
    const judging = { network, now: clock.now(), toleranceMs, admit: keys, read }
    return openIssued({ agent_id: agentId, key: raw, issued }, key, judging)
  }

  /** The record, unless it has ended. */
  const known = (agentId: string): Member | undefined => {
    const member = members.get(agentId)
    if (!member || member.until < clock.now() - toleranceMs) return undefined
    return revoked(agentId, member.key) === undefined ? member : undefined
  }

  const judge = (claim: Claim): { verdict: Judgement; issued?: Issued } => {
    const { agentId, fingerprint } = claim
    let issued: Issued
    try {
      issued = open(claim)
    } catch (error) {
      if (!isHermesError(error)) throw error
      const text = `${error.message} (organisation ${key.fingerprint})`
      const { code } = error
      if (code === 'IDENTITY_MISMATCH') return { verdict: { admitted: false, code, reason: text } }
      return { verdict: notAllowed(text) }
    }
    const { organisation: said, team } = issued
    const gone = team && revoked(team.prefix, keys(team.team_key).fingerprint)
    if (gone !== undefined) return { verdict: notAllowed(`the key of team ${team?.team} was revoked: ${gone}`) }
    const member = known(agentId)
    if (member && member.key !== fingerprint) return { verdict: mismatch(agentId, fingerprint, member.key) }
    if (member && said.serial < member.serial) {
      return {
        verdict: notAllowed(
          `${agentId} came with certificate ${said.serial} of the organisation, ${member.serial} is known`,
        ),
      }
    }
    if (!member && members.size >= MOST) {
      sweep()
      if (members.size >= MOST) return { verdict: notAllowed(`${MOST} agents are on record already`) }
    }
    return { verdict: ADMITTED, issued }
  }

  const sweep = (): void => {
    for (const agentId of members.keys()) {
      if (known(agentId)) continue
      members.delete(agentId)
      notes?.keep(`${PREFIX}${agentId}`, undefined)
    }
  }

  return {
    judge: (claim) => judge(claim).verdict,
    proven(claim) {
      const { verdict, issued } = judge(claim)
      if (!verdict.admitted) throw new HermesError(verdict.code, { message: verdict.reason })
      const { serial, not_after, team, roles } = (issued as Issued).organisation
      const { agentId, fingerprint } = claim
      const member = known(agentId)
      if (member?.serial === serial && member.until === not_after) return
      const entry = { key: fingerprint, serial, until: not_after, team, roles }
      members.set(agentId, entry)
      notes?.keep(`${PREFIX}${agentId}`, entry)
    },
    known: (agentId) => known(agentId)?.key,
    membership(agentId) {
      const member = known(agentId)
      return member && ({ team: member.team, roles: member.roles } satisfies Membership)
    },
    async restore(memory) {
      notes = memory.notes
      revoked = memory.revoked
      for await (const [name, value] of notes.entries(PREFIX)) {
        if (isMember(value) && members.size < MOST) members.set(name.slice(PREFIX.length), value)
      }
    },
    mayRevoke: (signer) => equalBytes(signer, key.raw),
    describe: () => `admitted: the agents that the organisation ${key.fingerprint} has certified`,
  }
}

function isMember(value: unknown): value is Member {
  const { key, serial, until, team, roles } = (value ?? {}) as Partial<Member>
  return (
    typeof key === 'string' &&
    typeof team === 'string' &&
    Array.isArray(roles) &&
    Number.isSafeInteger(serial) &&
    Number.isSafeInteger(until)
  )
}
