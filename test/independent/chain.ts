import { kindOf, readDocument } from './documents.ts'
import { type VerifyingKey, verifyingKey } from './ed25519.ts'
import type { JsonMap } from './json.ts'
import { Refused } from './refused.ts'

export interface Claimed {
  agentId: string
  key: Uint8Array
  certificates: Uint8Array[]
}

export interface Circumstances {
  network: string
  now: number
  toleranceMs: number
  /** The key of the organisation that is trusted, where its word is asked for or given. */
  organisation: VerifyingKey
  demands: boolean
}

const KINDS = ['team', 'organisation', 'instance']
const MOST_BYTES = 5 * 1024

/** From the agent key, and the key of the organisation, to the key that signs for the agent. */
export function followChain({ agentId, key, certificates }: Claimed, circumstances: Circumstances): object {
  const { network, now, toleranceMs, organisation, demands } = circumstances
  if (certificates.reduce((sum, { length }) => sum + length, 0) > MOST_BYTES)
    throw new Refused('size', 'too long together')
  if (certificates.length > KINDS.length) throw new Refused('document', 'too many certificates')
  const kinds = certificates.map(kindOf)
  const places = kinds.map((kind) => KINDS.indexOf(String(kind)))
  const rising = places.every((place, at) => place > (at === 0 ? -1 : (places[at - 1] as number)))
  if (!rising || (kinds[0] === 'team' && kinds[1] !== 'organisation'))
    throw new Refused('document', `the chain ${kinds}`)
  const agentKey = verifyingKey(key)

  const read = (kind: string, issuer: VerifyingKey): JsonMap | undefined => {
    const bytes = certificates[kinds.indexOf(kind)]
    if (bytes === undefined) return undefined
    // Which network and which agent it is for counts before its time.
    const json = readDocument(bytes, 'certificate', issuer, now, Number.POSITIVE_INFINITY)
    if (json.network !== network) throw new Refused('network', `of network ${json.network}`)
    if (kind !== 'team' && json.agent_id !== agentId) throw new Refused('identity', `of ${json.agent_id}`)
    if (kind === 'organisation' && json.agent_key !== Buffer.from(key).toString('base64url')) {
      throw new Refused('identity', 'for another key')
    }
    return readDocument(bytes, 'certificate', issuer, now, toleranceMs)
  }
  const keyIn = (json: JsonMap, field: string) => verifyingKey(Buffer.from(json[field] as string, 'base64url'))

  const instance = read('instance', agentKey)
  const signer = instance ? keyIn(instance, 'instance_key') : agentKey
  const found = { signer: signer.fingerprint, serial: instance?.serial ?? 0 }
  const team = read('team', organisation)
  const named = read('organisation', team ? keyIn(team, 'team_key') : organisation)
  if (!named) {
    if (demands) throw new Refused('rights', 'nothing of the organisation')
    return found
  }
  const roles = named.roles as string[]
  if (team) {
    const prefix = team.prefix as string
    if (agentId !== prefix && !agentId.startsWith(`${prefix}/`)) throw new Refused('rights', `not under ${prefix}`)
    if (named.team !== team.team) throw new Refused('rights', `of another team`)
    if (roles.some((role) => !(team.roles as string[]).includes(role))) throw new Refused('rights', 'a role too many')
  }
  return { ...found, organisation: { team: named.team, roles } }
}
