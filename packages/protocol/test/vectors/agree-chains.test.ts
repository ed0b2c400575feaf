import { describe, expect, it } from 'vitest'
import { type Judging, openChain, openIssued, publicKey } from '../../src/index.ts'
import { expected, type Read, read, verdicts } from './support.ts'

const unhex = (text: string) => new Uint8Array(Buffer.from(text, 'hex'))

describe('chains of certificates', () => {
  const { network, tolerance_ms, organisation, accepted, refused } = read('chains')
  const organisationKey = publicKey(unhex(organisation))

  const open = (vector: Read) => {
    const shown = {
      agent_id: vector.agent_id,
      key: unhex(vector.key),
      certificates: vector.certificates.map(unhex),
    }
    const judging: Judging = { network, now: vector.now, toleranceMs: tolerance_ms }
    const { signer, instance, issued } = openChain(shown, judging)
    const said =
      issued.length > 0 || vector.demands ? openIssued({ ...shown, issued }, organisationKey, judging) : undefined
    return {
      signer: signer.fingerprint,
      serial: instance?.serial ?? 0,
      ...(said ? { organisation: { team: said.organisation.team, roles: said.organisation.roles } } : {}),
    }
  }

  it.each(accepted as Read[])('lead to the key that signs: $name', (vector) => {
    const { signer, serial, organisation } = vector
    expect(open(vector)).toEqual({ signer, serial, ...(organisation ? { organisation } : {}) })
  })

  it('are refused with a code', () => {
    expect(verdicts(refused, open)).toEqual(expected(refused))
  })
})
