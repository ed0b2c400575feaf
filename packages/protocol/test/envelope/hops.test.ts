import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  bindPayload,
  decodeHeader,
  encodeHeader,
  type Header,
  HermesError,
  type Hop,
  type HopsContext,
  hopLink,
  leafOf,
  type PublicKey,
  type SignedHop,
  signHop,
  utf8,
  verifyHops,
} from '../../src/index.ts'
import { keyOf, PEOPLE, people, RUNS, UNTIL_NOTICED, verdictOf } from './support.ts'

type Verify = typeof verifyHops

/** A way of an envelope: from its originator to the first addressee, over forwarders, to who judges. */
interface Way {
  agents: readonly string[]
  count: number
  maxHops: number
  byCapability: boolean
  budget: number
}

const ways: fc.Arbitrary<Way> = fc.record({
  agents: people,
  count: fc.constantFrom(1, 1, 2, 2, 3, 3, 4, 7),
  maxHops: fc.integer({ min: 0, max: 7 }),
  byCapability: fc.boolean(),
  budget: fc.integer({ min: 0, max: 60_000 }),
})
const within = ways.map((way) => ({ ...way, maxHops: Math.max(way.maxHops, way.count) }))

const NOW = 1_767_225_600_000
const publicKeyOf = (agent: string): PublicKey | undefined => PEOPLE.get(agent)?.publicKey

function headerOf({ agents: [originator, first], maxHops, byCapability }: Way): { header: Header; leaf: string } {
  const bytes = encodeHeader({
    network: 'dev-team',
    message_id: 'msg_0123456789abcdef',
    trace_id: 'a'.repeat(32),
    span_id: 'b'.repeat(16),
    message_type: 'request',
    sender: { agent_id: originator as string, key: keyOf(originator as string).publicKey.fingerprint },
    recipient: byCapability ? { capability: 'work', via: first as string } : { agent_id: first as string },
    target_capability: 'work',
    epoch: 1,
    recipient_epoch: 1,
    sequence: 1,
    timestamp: NOW,
    max_hops: maxHops,
    ...bindPayload(utf8('{}')),
  })
  return { header: decodeHeader(bytes), leaf: leafOf(bytes) }
}

/** The hop that agent number `index + 1` of the way makes, following `previous`. */
const hopOf = (way: Way, index: number, previous: string): Hop => ({
  forwarder: way.agents[index + 1] as string,
  next: way.agents[index + 2] as string,
  index,
  timestamp: NOW + index,
  budget_ms: way.budget + way.count - 1 - index,
  previous,
})

/** Signs each hop over the one before; `change` may alter one before it is signed. */
function walk(way: Way, change: (hop: Hop) => Hop = (hop) => hop): HopsContext {
  const { header, leaf } = headerOf(way)
  const hops: SignedHop[] = []
  for (let index = 0; index < way.count; index++) {
    const before = hops.at(-1)
    const hop = change(hopOf(way, index, before ? hopLink(before) : leaf))
    hops.push(signHop(hop, keyOf(way.agents[index + 1] as string)))
  }
  const [neighbour, self] = [way.agents[way.count], way.agents[way.count + 1]] as [string, string]
  return { header, leaf, hops, neighbour, self, keyOf: publicKeyOf }
}

/** One change of one hop, made before it is signed by its own forwarder. */
const changes = fc.constantFrom<(hop: Hop, way: Way) => Hop>(
  (hop) => ({ ...hop, index: hop.index + 1 }),
  (hop) => ({ ...hop, previous: 'ab'.repeat(32) }),
  (hop, { agents }) => ({ ...hop, next: agents[0] as string }),
  (hop) => ({ ...hop, next: hop.forwarder }),
  (hop) => ({ ...hop, next: 'ghost' }),
  (hop, { agents }) => ({ ...hop, forwarder: agents[0] as string }),
  (hop) => ({ ...hop, forwarder: 'ghost' }),
)

/** What somebody on the way can do to a chain without the keys of the others. */
const tampers = fc.constantFrom<(context: HopsContext, at: number) => HopsContext>(
  (context, at) => ({ ...context, hops: context.hops.toSpliced(at, 1) }),
  (context, at) => ({ ...context, hops: context.hops.toSpliced(at, 0, context.hops[at] as SignedHop) }),
  (context, at) => ({ ...context, hops: swapped(context.hops, at) }),
  (context, at) => ({ ...context, hops: resigned(context.hops, at) }),
  (context, at) => ({ ...context, hops: rewritten(context.hops, at) }),
  (context) => ({ ...context, leaf: 'cd'.repeat(32) }),
  (context) => ({ ...context, self: 'ghost' }),
  (context) => ({ ...context, neighbour: context.self }),
  (context, at) => ({
    ...context,
    keyOf: (agent) => (agent === forwarderOf(context, at) ? undefined : publicKeyOf(agent)),
  }),
)

const forwarderOf = ({ hops }: HopsContext, at: number): string =>
  (JSON.parse(Buffer.from((hops[at] as SignedHop).body).toString()) as Hop).forwarder

function swapped(hops: readonly SignedHop[], at: number): SignedHop[] {
  const [one, two] = [hops[at], hops[(at + 1) % hops.length]] as [SignedHop, SignedHop]
  const list = [...hops]
  list[at] = hops.length === 1 ? { ...one, signature: new Uint8Array(64) } : two
  list[(at + 1) % hops.length] = hops.length === 1 ? (list[at] as SignedHop) : one
  return list
}

const resigned = (hops: readonly SignedHop[], at: number): SignedHop[] => {
  const { body, signature } = hops[at] as SignedHop
  return hops.toSpliced(at, 1, { body, signature: signature.map((byte, i) => (i === 5 ? byte ^ 1 : byte)) })
}

const rewritten = (hops: readonly SignedHop[], at: number): SignedHop[] => {
  const { body, signature } = hops[at] as SignedHop
  const text = Buffer.from(body)
    .toString()
    .replace(/"budget_ms":\d+/, '"budget_ms":999999')
  return hops.toSpliced(at, 1, { body: utf8(text), signature })
}

const changed = (verify: Verify) =>
  fc.property(within, changes, fc.nat(6), (way, change, at) => {
    const target = at % way.count
    const context = walk(way, (hop) => (hop.index === target ? change(hop, way) : hop))
    expect(verdictOf(() => verify(context))).toBe('BAD_HOPS')
  })

const tampered = (verify: Verify) =>
  fc.property(within, tampers, fc.nat(6), (way, tamper, at) => {
    const context = walk(way)
    const verdict = verdictOf(() => verify(tamper(context, at % way.count)))
    // Without its only hop it is a direct message, which is judged by its sender; one hop more may be too many.
    const removed = way.count === 1 && verdict === 'accepted'
    if (!removed) expect(['BAD_HOPS', 'TTL_EXPIRED']).toContain(verdict)
    else expect(tamper(context, 0).hops).toEqual([])
  })

/** The last hop leads to an agent that the message has come from or through already, and that agent judges. */
const circling = (verify: Verify) =>
  fc.property(within, fc.nat(7), (way, at) => {
    const back = way.agents[at % (way.count + 1)] as string
    const context = walk(way, (hop) => (hop.index === way.count - 1 ? { ...hop, next: back } : hop))
    expect(verdictOf(() => verify({ ...context, self: back }))).toBe('BAD_HOPS')
  })

describe('hops', () => {
  it('of an honest way are accepted as far as max_hops allows, and the last one tells the budget', () => {
    fc.assert(
      fc.property(ways, (way) => {
        const context = walk(way)
        const verdict = verdictOf(() => verifyHops(context))
        expect(verdict).toBe(way.count <= way.maxHops ? 'accepted' : 'TTL_EXPIRED')
        if (verdict === 'accepted') expect(verifyHops(context)?.budget_ms).toBe(way.budget)
      }),
      RUNS,
    )
  })

  it('are refused when one was signed with anything else than the truth', () => {
    fc.assert(changed(verifyHops), RUNS)
  })

  it('are refused when somebody has changed, moved, added or taken one', () => {
    fc.assert(tampered(verifyHops), RUNS)
  })

  it('never lead back to an agent that they have passed, the originator included', () => {
    fc.assert(circling(verifyHops), RUNS)
  })

  it('belong to one envelope: those of another attempt are refused', () => {
    fc.assert(
      fc.property(within, (way) => {
        const other = headerOf({ ...way, maxHops: way.maxHops === 7 ? 0 : way.maxHops + 1, count: 0 })
        expect(verdictOf(() => verifyHops({ ...walk(way), leaf: other.leaf }))).toBe('BAD_HOPS')
      }),
      RUNS,
    )
  })
})

describe('the checks above notice a verifier', () => {
  const overlooking =
    (words: string): Verify =>
    (context) => {
      try {
        return verifyHops(context)
      } catch (error) {
        if (error instanceof HermesError && error.message.includes(words)) return undefined
        throw error
      }
    }

  const byChanges = (verify: Verify): void => fc.assert(changed(verify), UNTIL_NOTICED)
  const byTampers = (verify: Verify): void => fc.assert(tampered(verify), UNTIL_NOTICED)
  const byCircles = (verify: Verify): void => fc.assert(circling(verify), UNTIL_NOTICED)

  it.each([
    ['that does not check previous', 'does not follow from the one before', byChanges],
    ['that does not check the index', 'stands in the wrong place', byChanges],
    ['that does not check who made a hop', 'was not made by the agent it was handed to', byChanges],
    ['that does not check signatures', 'is not signed by its forwarder', byTampers],
    ['that does not check for whom it is', 'was meant for another agent', byTampers],
    ['that does not check the neighbour', 'came from another agent than its forwarder', byTampers],
    ['that takes unknown keys for good', 'key is not known', byTampers],
    ['that lets a message go in a circle', 'leads back', byCircles],
  ])('%s', (_, words, check) => {
    expect(() => check(overlooking(words))).toThrow('Property failed')
  })
})
