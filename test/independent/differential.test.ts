import { isDeepStrictEqual } from 'node:util'
import { type PublicKey, publicKey } from '@hermes-peer/protocol'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { implementation, type Outcome, STEPS, type Steps } from './differential/implementation.ts'
import { type Made, makeFrame } from './differential/make.ts'
import { type Plan, plan } from './differential/plan.ts'
import { PLANTED } from './differential/planted.ts'
import { signers } from './differential/sign.ts'
import { readPayload, verifyBytes } from './envelope.ts'
import { type Fault, judge } from './refused.ts'
import { fits } from './support.ts'

const FRAMES = 5000
const known = signers()
const keys = new Map<string, PublicKey>([...known].map(([agent, { key }]) => [agent, publicKey(key.raw)]))

interface Other {
  accepted: boolean
  views?: object[]
  fault?: Fault
  why?: string
}

function independent({ bytes, self, neighbour }: Made): Other {
  const arrival = { self, neighbour, keyOf: (agent: string) => known.get(agent)?.key }
  const verdict = judge(() => verifyBytes(bytes, arrival).map((one) => ({ ...one, payload: readPayload(one) })))
  return verdict.accepted ? { accepted: true, views: verdict.value } : verdict
}

function theirs({ bytes, self, neighbour }: Made, steps?: Steps): Outcome {
  return implementation(bytes, { self, neighbour, keyOf: (agent) => keys.get(agent) }, steps)
}

/** The text gives the order of the stages, not of the checks within one: there any code of the stage will do. */
const WITHIN: Partial<Record<Fault, readonly Fault[]>> = {
  frame: ['frame', 'size', 'tag', 'proof'],
  size: ['frame', 'size', 'tag', 'proof'],
  header: ['header', 'version', 'depth'],
  version: ['header', 'version', 'depth'],
  depth: ['header', 'version', 'depth'],
  hop: ['hop', 'hops', 'ttl'],
  hops: ['hop', 'hops', 'ttl'],
  ttl: ['hop', 'hops', 'ttl'],
}

/** Both verdicts of one frame; throws where they differ. */
function compare(made: Made, steps?: Steps): string {
  const [one, two] = [independent(made), theirs(made, steps)]
  const shown = `independent: ${one.why ?? 'accepted'}; implementation: ${two.accepted ? 'accepted' : two.code}`
  if (one.accepted !== two.accepted) throw new Error(shown)
  if (two.accepted) {
    if (!isDeepStrictEqual(two.views, one.views))
      throw new Error(`${JSON.stringify(two.views)}; ${JSON.stringify(one.views)}`)
    return 'accepted'
  }
  const fault = one.fault as Fault
  if (!(WITHIN[fault] ?? [fault]).some((other) => fits(other, one.why ?? '', two.code))) throw new Error(shown)
  return two.code
}

/** Frames per kind of verdict that a run must meet at least, so that it says something. */
const LEAST: Record<string, number> = {
  accepted: 500,
  MALFORMED: 500,
  PAYLOAD_MISMATCH: 100,
  BAD_SIGNATURE: 100,
  INVALID_PAYLOAD: 100,
  BAD_HOPS: 50,
  BAD_PROOF: 50,
  WRONG_SENDER: 10,
  LIMIT_EXCEEDED: 5,
  UNKNOWN_TAG: 5,
  UNSUPPORTED_VERSION: 5,
  DEPTH_EXCEEDED: 5,
  TTL_EXPIRED: 2,
}

describe('two decoders', () => {
  it(`say the same of ${FRAMES} frames, right, wrong and nearly right`, () => {
    const seen = new Map<string, number>()
    const check = (drawn: Plan): void => {
      const verdict = compare(makeFrame(drawn, known))
      seen.set(verdict, (seen.get(verdict) ?? 0) + 1)
    }
    fc.assert(fc.property(plan, check), { numRuns: FRAMES })
    const counts = [...seen].sort(([, a], [, b]) => b - a)
    console.info(`frames: ${counts.map(([verdict, count]) => `${verdict} ${count}`).join(', ')}`)
    const rare = Object.entries(LEAST).filter(([verdict, least]) => (seen.get(verdict) ?? 0) < least)
    expect(rare).toEqual([])
  }, 120_000)

  it('accept every frame that is made without changes', () => {
    const whole = plan.map((drawn) => ({ ...drawn, changes: [] }))
    const check = (drawn: Plan): void => {
      expect(compare(makeFrame(drawn, known))).toBe('accepted')
    }
    fc.assert(fc.property(whole, check), { numRuns: 300 })
  })

  it.each(Object.entries(PLANTED))('would notice %s', (_, { place, ...broken }) => {
    const there = plan.map((drawn) => ({ ...drawn, changes: drawn.changes.map((change) => ({ ...change, place })) }))
    const check = (drawn: Plan): void => {
      compare(makeFrame(drawn, known), { ...STEPS, ...broken })
    }
    const run = (): void => fc.assert(fc.property(there, check), { numRuns: FRAMES, endOnFailure: true })
    expect(run).toThrow('Property failed')
  })
})
