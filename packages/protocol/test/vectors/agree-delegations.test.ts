import { describe, expect, it } from 'vitest'
import {
  type DelegationContext,
  type DelegationLink,
  judgeConstraints,
  openDelegation,
  placed,
  sha256Hex,
  toHex,
} from '../../src/index.ts'
import { chainOf } from './delegations.ts'
import { fieldsOf } from './document-samples.ts'
import { bytesOf, NETWORK } from './scene.ts'
import { expected, knownKeys, type Read, read, verdicts } from './support.ts'

const keys = knownKeys()
const { accepted, refused, findings } = read('delegations')

const contextOf = (now: number): DelegationContext => ({
  network: NETWORK,
  now,
  aheadMs: 600_000,
  lateMs: 30_000,
  keyOf(agentId, raw) {
    const key = keys.get(agentId)
    return key && toHex(key.raw) === toHex(raw) ? key : undefined
  },
})
const open = ({ bytes, now }: Read) => openDelegation(bytesOf(bytes), contextOf(now))

describe('delegations', () => {
  it.each(accepted as Read[])('are read and written: $name', (vector) => {
    expect(open(vector).map(fieldsOf)).toEqual(vector.links)
    const links = vector.links.map((link: Read) => ({
      ...link,
      key: new Uint8Array(Buffer.from(link.key, 'base64url')),
    }))
    expect(toHex(chainOf(links as DelegationLink[]))).toBe(vector.bytes)
    expect(sha256Hex(bytesOf(vector.bytes))).toBe(vector.sha256)
  })

  it('threat: delegation widening — are refused with a code', () => {
    expect(verdicts(refused, open)).toEqual(expected(refused))
  })

  it.each(findings as Read[])('$constraints finds in $input: $finding', ({ constraints, input, finding }) => {
    expect(judgeConstraints(placed(constraints), input)).toBe(finding)
  })
})
