import {
  encodeProven,
  fromHex,
  type Hop,
  hopLink,
  inDomain,
  partInDomain,
  proofOf,
  type SignedHop,
  type SigningKey,
  signBatch,
  signHop,
  toHex,
  utf8,
} from '../../src/index.ts'
import { type Envelope, envelopeOf, frameOf, idOf, KEYS, type Name, NOW, requestDraft, type Vector } from './scene.ts'

const ENVELOPE = envelopeOf(requestDraft({ message_id: idOf('msg', 'hops') }), { input: { 转交: true } })

interface Step {
  from: Name
  to: string
  changes?: Partial<Hop>
  key?: SigningKey
}

/** Hops as their forwarders would sign them, each over the one before; `changes` are made before signing. */
function chain(steps: readonly Step[], leaf = ENVELOPE.leaf): SignedHop[] {
  const hops: SignedHop[] = []
  for (const [index, { from, to, changes, key }] of steps.entries()) {
    const before = hops.at(-1)
    const hop: Hop = {
      forwarder: from,
      next: to,
      index,
      timestamp: NOW + 10 * index,
      budget_ms: 59_000 - 1000 * index,
      previous: before ? hopLink(before) : leaf,
      ...changes,
    }
    hops.push(signHop(hop, key ?? KEYS[from]))
  }
  return hops
}

interface Situation {
  self?: string
  neighbour?: string
  envelope?: Envelope
}

function vector(
  name: string,
  hops: readonly SignedHop[],
  { self = 'reviewer', neighbour = 'tester-a', envelope = ENVELOPE }: Situation = {},
): Vector {
  return {
    name,
    self,
    neighbour,
    hops: hops.map(({ body, signature }) => ({
      json: Buffer.from(body).toString('latin1'),
      signature: toHex(signature),
    })),
    bytes: toHex(frameOf(envelope, hops)),
  }
}

const ONE: Step[] = [{ from: 'coder', to: 'tester-a' }]
const TWO: Step[] = [...ONE, { from: 'tester-a', to: 'reviewer' }]
const THREE: Step[] = [...TWO, { from: 'reviewer', to: 'billing/ledger' }]

function accepted(): Vector[] {
  const byCapability = envelopeOf(
    requestDraft({ message_id: idOf('msg', 'hops via'), recipient: { capability: 'fix-test', via: 'coder' } }),
    { input: {} },
  )
  const budget = (hops: SignedHop[]) => ({
    budget_ms: (JSON.parse(Buffer.from(hops.at(-1)?.body ?? []).toString()) as Hop).budget_ms,
  })
  const ok = (name: string, hops: SignedHop[], situation?: Situation) => ({
    ...vector(name, hops, situation),
    ...budget(hops),
  })
  return [
    ok('one hop', chain(ONE), { self: 'tester-a', neighbour: 'coder' }),
    ok('two hops', chain(TWO)),
    ok('three hops', chain(THREE), { self: 'billing/ledger', neighbour: 'reviewer' }),
    ok('by capability, from via', chain(TWO, byCapability.leaf), { envelope: byCapability }),
    ok('no budget left', chain([ONE[0] as Step, { from: 'tester-a', to: 'reviewer', changes: { budget_ms: 0 } }])),
    proven(),
  ]
}

/** A forwarded envelope that came in a batch: tag 1 with a hop. */
function proven(): Vector {
  const leaves = [ENVELOPE.leaf, 'ab'.repeat(32)].map(fromHex)
  const proof = proofOf(leaves, 0, signBatch(leaves, KEYS.pm))
  const hops = chain(TWO)
  return {
    ...vector('two hops behind a batch proof', hops),
    budget_ms: 58_000,
    bytes: toHex(encodeProven({ ...ENVELOPE, proof, hops })),
  }
}

function refused(): Vector[] {
  const no = (name: string, hops: readonly SignedHop[], situation?: Situation, code = 'BAD_HOPS'): Vector => {
    return { ...vector(name, hops, situation), code }
  }
  const second = (changes: Partial<Hop>, key?: SigningKey) =>
    chain([ONE[0] as Step, { from: 'tester-a', to: 'reviewer', changes, ...(key ? { key } : {}) }])
  const good = chain(TWO) as [SignedHop, SignedHop]
  const resigned = (text: string, what: 'hop' | 'envelope' = 'hop'): SignedHop => {
    const body = utf8(text)
    return { body, signature: KEYS['tester-a'].sign(partInDomain(what, body)) }
  }
  const json = Buffer.from(good[1].body).toString()
  const malformed = (name: string, text: string) => no(name, [good[0], resigned(text)], undefined, 'MALFORMED')
  const limited = envelopeOf(requestDraft({ message_id: idOf('msg', 'hops 1'), max_hops: 1 }), {})
  const none = envelopeOf(requestDraft({ message_id: idOf('msg', 'hops 0'), max_hops: 0 }), {})
  return [
    no('more hops than max_hops', chain(TWO, limited.leaf), { envelope: limited }, 'TTL_EXPIRED'),
    no(
      'a hop where max_hops is 0',
      chain(ONE, none.leaf),
      { envelope: none, self: 'tester-a', neighbour: 'coder' },
      'TTL_EXPIRED',
    ),
    no('the first forwarder was not addressed', chain([{ from: 'tester-a', to: 'reviewer' }])),
    no('the last forwarder is not the neighbour', chain(TWO), { neighbour: 'coder' }),
    no('meant for another agent', chain(TWO), { self: 'billing/ledger' }),
    no('the first hop does not follow from the envelope', chain(TWO, 'ab'.repeat(32))),
    no('the second hop does not follow from the first', second({ previous: ENVELOPE.leaf })),
    no('the second hop names the hash of other bytes', second({ previous: 'ab'.repeat(32) })),
    no('an index that is too high', second({ index: 2 })),
    no('an index twice', second({ index: 0 })),
    no(
      'a forwarder that the hop before did not lead to',
      chain([{ from: 'coder', to: 'billing/ledger' }, TWO[1] as Step]),
    ),
    no('an agent twice', chain([...ONE, { from: 'tester-a', to: 'coder' }, { from: 'coder', to: 'reviewer' }]), {
      neighbour: 'coder',
    }),
    no(
      'handed to oneself',
      chain([
        { from: 'coder', to: 'coder' },
        { from: 'coder', to: 'reviewer' },
      ]),
      { neighbour: 'coder' },
    ),
    no('back to an agent that has forwarded it', chain([...ONE, { from: 'tester-a', to: 'coder' }]), { self: 'coder' }),
    no('back to its originator', chain([...ONE, { from: 'tester-a', to: 'pm' }]), { self: 'pm' }),
    no(
      'forwarded by its originator',
      chain([
        { from: 'coder', to: 'pm' },
        { from: 'pm', to: 'reviewer' },
      ]),
      { neighbour: 'pm' },
    ),
    no('signed by another agent', second({}, KEYS.stranger)),
    no('the signatures of two hops swapped', [
      { ...good[0], signature: good[1].signature },
      { ...good[1], signature: good[0].signature },
    ]),
    no('two hops swapped', [good[1], good[0]]),
    no('the first hop left out', [good[1]]),
    no('the last hop left out', [good[0]]),
    no('a budget raised after signing', [good[0], { ...good[1], body: utf8(json.replace('58000', '59999')) }]),
    no('signed as an envelope', [good[0], resigned(json, 'envelope')]),
    no('signed without its length', [
      good[0],
      { ...good[1], signature: KEYS['tester-a'].sign(inDomain('hop', good[1].body)) },
    ]),
    no('by an agent whose key is not known', unknownForwarder(), { neighbour: 'ghost' }),
    malformed('not JSON', 'hop'),
    malformed('white space', json.replace(',', ', ')),
    malformed('a key twice', json.replace('{', '{"index":1,')),
    malformed('a field left out', json.replace(/"budget_ms":\d+,/, '')),
    malformed('an unknown field', json.replace('}', ',"ttl":3}')),
    malformed('a name that is none', json.replace('"reviewer"', '"Reviewer"')),
    malformed('a negative budget', json.replace('58000', '-1')),
    malformed('a fraction', json.replace('58000', '58000.5')),
    malformed('a hash in capitals', json.replace(/[0-9a-f]{64}/, 'AB'.repeat(32))),
    malformed('a list', '[]'),
  ]
}

/** `ghost` has no key in keys.json. */
function unknownForwarder(): SignedHop[] {
  const hop = { forwarder: 'ghost', next: 'reviewer', index: 1, timestamp: NOW, budget_ms: 1 }
  const [first] = chain([{ from: 'coder', to: 'ghost' }]) as [SignedHop]
  return [first, signHop({ ...hop, previous: hopLink(first) }, KEYS.stranger)]
}

export function hopVectors(): Vector {
  return {
    about:
      'Forwarded envelopes: frames with hops as they reach `self` over the link of `neighbour`. The envelope is signed by `pm`, each hop by its forwarder (keys.json; every agent there is known, no other). `budget_ms` is what is left for `self`.',
    accepted: accepted(),
    refused: refused(),
  }
}
