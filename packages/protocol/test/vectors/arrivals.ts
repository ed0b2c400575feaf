import {
  encodeBatch,
  encodeProven,
  fromHex,
  type HeaderDraft,
  type Hop,
  proofOf,
  signBatch,
  signHop,
  toHex,
} from '../../src/index.ts'
import { type Envelope, envelopeOf, frameOf, idOf, KEYS, NOW, requestDraft, UNSEQUENCED, type Vector } from './scene.ts'

const HOUR = 3_600_000
const PM_LIFE = NOW - 60_000
const CODER_LIFE = NOW - 50_000

/** Where each envelope of this file arrives. */
const RECEIVER = {
  agent_id: 'coder',
  network: 'dev-team',
  epoch: CODER_LIFE,
  now: NOW,
  link: { agent_id: 'pm', epoch: PM_LIFE, next_sequence: 5, clock_offset_ms: 0 },
}

/** `pm` to `coder`; its place in the order is the one that is awaited. */
const draft = (name: string, changes: Partial<HeaderDraft> = {}): HeaderDraft =>
  requestDraft({ message_id: idOf('msg', name), sequence: 5, ...changes })

const plain = (name: string, changes: Partial<HeaderDraft> = {}) =>
  frameOf(envelopeOf(draft(name, changes), { input: {} }))

function ok(name: string, bytes: Uint8Array, more: Vector = {}): Vector {
  return { name, bytes: toHex(bytes), ...more }
}

function no(name: string, code: string, bytes: Uint8Array, more: Vector = {}): Vector {
  return { name, bytes: toHex(bytes), code, ...more }
}

const proven = (name: string, count: number): Uint8Array => {
  const envelopes = Array.from({ length: count }, (_, index) => envelopeOf(draft(`${name} ${index}`), { input: index }))
  const leaves = envelopes.map(({ leaf }) => fromHex(leaf))
  const [first] = envelopes as [Envelope]
  return encodeProven({ ...first, proof: proofOf(leaves, 0, signBatch(leaves, KEYS.pm)), hops: [] })
}

const skewed = (ms: number) => ({ link: { ...RECEIVER.link, clock_offset_ms: ms } })

/** `tester-a` to `pm`, the first addressee, who hands it on to the receiver. */
function handedOn(name: string, changes: Partial<HeaderDraft> = {}, hop: Partial<Hop> = {}): Uint8Array {
  const envelope = envelopeOf(
    requestDraft({
      message_id: idOf('msg', name),
      sender: { agent_id: 'tester-a', key: KEYS['tester-a'].publicKey.fingerprint },
      recipient: { agent_id: 'pm' },
      ...changes,
    }),
    { input: {} },
    KEYS['tester-a'],
  )
  const last = { forwarder: 'pm', next: 'coder', index: 0, timestamp: NOW, budget_ms: 1000, previous: envelope.leaf }
  return frameOf(envelope, [signHop({ ...last, ...hop }, KEYS.pm)])
}

/** What counts at the first addressee only, and by its clock. */
const forwardedAccepted = (): Vector[] => [
  ok('a forwarded request', handedOn('forwarded')),
  ok('a forwarded request for another life of the first addressee', handedOn('forwarded 2', { recipient_epoch: 1 })),
  ok('a forwarded request whose place in the order is long past', handedOn('forwarded 3', { sequence: 1 })),
  ok(
    'a forwarded request by capability',
    handedOn('forwarded 4', { recipient: { capability: 'fix-test', via: 'pm' } }),
  ),
  ok(
    'a forwarded request from an unknown clock that is 10 minutes ahead',
    handedOn('forwarded 5', { timestamp: NOW + 600_000, expires_at: NOW + 660_000 }),
  ),
  ok(
    'a forwarded submit',
    handedOn('submit 2', { message_type: 'submit', call_type: 'task', expires_at: NOW + HOUR, timeout_ms: 10_000 }),
  ),
]

const forwardedRefused = (): Vector[] => [
  no(
    'a forwarded request with a hop that does not hold',
    'BAD_HOPS',
    handedOn('hop', {}, { previous: '0'.repeat(64) }),
  ),
  no(
    'a forwarded request that was handed on to another agent',
    'BAD_HOPS',
    handedOn('hop 2', {}, { next: 'reviewer' }),
  ),
  no(
    'a forwarded request that was for another agent first',
    'BAD_HOPS',
    handedOn('hop 3', { recipient: { agent_id: 'reviewer' } }),
  ),
  no('a forwarded request that may not be handed on', 'TTL_EXPIRED', handedOn('hop 4', { max_hops: 0 })),
  no('a forwarded request of another network', 'WRONG_NETWORK', handedOn('hop 5', { network: 'other' })),
  no(
    'a forwarded request that has expired by any clock',
    'EXPIRED',
    handedOn('hop 6', { timestamp: NOW - 700_000, expires_at: NOW - 600_001 }),
  ),
]

function accepted(): Vector[] {
  return [
    ok('the next in order', plain('next')),
    ok('proven as one of a batch of five', proven('proven', 5)),
    ok(
      'by capability, through this agent first',
      plain('via', { recipient: { capability: 'fix-test', via: 'coder' } }),
    ),
    ok('a submit', plain('submit', { message_type: 'submit', call_type: 'task' })),
    ok(
      'a submit meant for any life of this agent',
      plain('submit 2', { message_type: 'submit', call_type: 'task', recipient_epoch: 0 }),
    ),
    ok('a heartbeat', plain('heartbeat', { ...UNSEQUENCED, message_type: 'heartbeat' })),
    ok(
      'a heartbeat that has expired: it brings the clock by which all others are judged',
      plain('heartbeat 2', { ...UNSEQUENCED, message_type: 'heartbeat', timestamp: 0, expires_at: 1 }),
    ),
    ok('said 30 s ahead of our clock', plain('ahead', { timestamp: NOW + 30_000, expires_at: NOW + 60_000 })),
    ok('expired 30 s ago', plain('late', { timestamp: NOW - 90_000, expires_at: NOW - 30_000 })),
    ok('expires in 24 hours', plain('24 h', { expires_at: NOW + 24 * HOUR })),
    ok(
      'from a clock that is 5 minutes ahead',
      plain('skew', { timestamp: NOW + 300_000, expires_at: NOW + 360_000 }),
      skewed(300_000),
    ),
    ok(
      'from a clock that is 5 minutes behind',
      plain('skew 2', { timestamp: NOW - 300_000, expires_at: NOW - 240_000 }),
      skewed(-300_000),
    ),
    ...forwardedAccepted(),
  ]
}

function refused(): Vector[] {
  const fingerprint = KEYS.stranger.publicKey.fingerprint
  const asStranger = (sender: HeaderDraft['sender']) =>
    envelopeOf(draft('stranger', { sender }), { input: {} }, KEYS.stranger)
  const changed = envelopeOf(draft('changed'), { input: {} })
  const lost = fromHex(envelopeOf(draft('lost'), {}).leaf)
  const wrongProof = proofOf([lost], 0, signBatch([lost], KEYS.pm))
  return [
    no(
      'in the name of another agent, with that agent’s key',
      'WRONG_SENDER',
      frameOf(
        envelopeOf(
          draft('reviewer', { sender: { agent_id: 'reviewer', key: KEYS.reviewer.publicKey.fingerprint } }),
          {},
          KEYS.reviewer,
        ),
      ),
    ),
    no(
      'in the name of another agent, with the own key',
      'WRONG_SENDER',
      plain('name', { sender: { agent_id: 'reviewer', key: KEYS.pm.publicKey.fingerprint } }),
    ),
    no(
      'in the name of the receiver',
      'WRONG_SENDER',
      frameOf(
        envelopeOf(
          draft('self', { sender: { agent_id: 'coder', key: KEYS.coder.publicKey.fingerprint } }),
          {},
          KEYS.coder,
        ),
      ),
    ),
    no('in its own name with another key', 'WRONG_SENDER', frameOf(asStranger({ agent_id: 'pm', key: fingerprint }))),
    no(
      'with the right fingerprint, signed by another key',
      'BAD_SIGNATURE',
      frameOf(asStranger({ agent_id: 'pm', key: KEYS.pm.publicKey.fingerprint })),
    ),
    no('a proof of another envelope', 'BAD_PROOF', encodeProven({ ...changed, proof: wrongProof, hops: [] })),
    no('with another payload', 'PAYLOAD_MISMATCH', frameOf({ ...changed, payload: Buffer.from('{"input":[]}') })),
    no('of another network', 'WRONG_NETWORK', plain('network', { network: 'other' })),
    no('meant for another agent', 'WRONG_RECIPIENT', plain('recipient', { recipient: { agent_id: 'reviewer' } })),
    no(
      'meant for another agent first',
      'WRONG_RECIPIENT',
      plain('via 2', { recipient: { capability: 'fix-test', via: 'reviewer' } }),
    ),
    no(
      'a broadcast over a link',
      'WRONG_RECIPIENT',
      plain('topic', { ...UNSEQUENCED, message_type: 'event', recipient: { topic: 'builds' } }),
    ),
    no('of an earlier life of its sender', 'STALE_EPOCH', plain('epoch', { epoch: PM_LIFE - 1 })),
    no('of a later life of its sender than its link', 'STALE_EPOCH', plain('epoch 2', { epoch: PM_LIFE + 1 })),
    no(
      'meant for an earlier life of the receiver',
      'PEER_RESTARTED',
      plain('life', { recipient_epoch: CODER_LIFE - 1 }),
    ),
    no(
      'meant for a later life of the receiver',
      'PEER_RESTARTED',
      plain('life 2', { recipient_epoch: CODER_LIFE + 1 }),
    ),
    no('expired', 'EXPIRED', plain('expired', { timestamp: NOW - 90_001, expires_at: NOW - 30_001 })),
    no(
      'an expired cancel',
      'EXPIRED',
      plain('expired 2', { ...UNSEQUENCED, message_type: 'cancel', timestamp: 0, expires_at: 1 }),
    ),
    no(
      'expires later than 24 hours from now',
      'EXPIRY_TOO_FAR',
      plain('far', { expires_at: NOW + 24 * HOUR + 30_001 }),
    ),
    no('from the future', 'EXPIRY_TOO_FAR', plain('future', { timestamp: NOW + 30_001, expires_at: NOW + 60_000 })),
    no(
      'expired, by a clock that is 5 minutes ahead',
      'EXPIRED',
      plain('skew 3', { timestamp: NOW, expires_at: NOW + 60_000 }),
      skewed(300_000),
    ),
    no('a place in the order that has been used', 'STALE_SEQUENCE', plain('sequence', { sequence: 4 })),
    no('the first place of all, replayed', 'STALE_SEQUENCE', plain('sequence 1', { sequence: 1 })),
    ...forwardedRefused(),
  ]
}

/** Legal on the wire, and refused by a peer that does not offer it yet. */
function notOffered(): Vector[] {
  const envelopes = [envelopeOf(draft('batch 0'), {}), envelopeOf(draft('batch 1', { sequence: 6 }), {})]
  const signature = signBatch(
    envelopes.map(({ leaf }) => fromHex(leaf)),
    KEYS.pm,
  )
  return [no('a batch', 'BATCH_UNSUPPORTED', encodeBatch({ signature, envelopes }))]
}

const broadcast = (name: string, changes: Partial<HeaderDraft> = {}) =>
  envelopeOf(draft(name, { ...UNSEQUENCED, message_type: 'event', recipient: { topic: 'builds' }, ...changes }), {
    data: '构建失败',
  })

function broadcasts(): { accepted: Vector[]; refused: Vector[] } {
  const at = { topic: 'builds' }
  const good = broadcast('broadcast')
  const hop = signHop(
    { forwarder: 'coder', next: 'reviewer', index: 0, timestamp: NOW, budget_ms: 1, previous: good.leaf },
    KEYS.coder,
  )
  const stranger = envelopeOf(
    draft('broadcast 2', {
      ...UNSEQUENCED,
      message_type: 'event',
      recipient: { topic: 'builds' },
      sender: { agent_id: 'ghost', key: KEYS.stranger.publicKey.fingerprint },
    }),
    {},
    KEYS.stranger,
  )
  const single = { signature: signBatch([fromHex(good.leaf)], KEYS.pm), envelopes: [good] }
  return {
    accepted: [
      ok('a broadcast', frameOf(good), at),
      ok(
        'from a clock that is 10 minutes ahead',
        frameOf(broadcast('broadcast 3', { timestamp: NOW + 600_000, expires_at: NOW + 660_000 })),
        at,
      ),
    ],
    refused: [
      no('of another topic', 'WRONG_RECIPIENT', frameOf(good), { topic: 'other' }),
      no('to one agent', 'WRONG_RECIPIENT', plain('broadcast 4'), at),
      no('of another network', 'WRONG_NETWORK', frameOf(broadcast('broadcast 5', { network: 'other' })), at),
      no('by an agent whose key is not known', 'NOT_ALLOWED', frameOf(stranger), at),
      no('not signed by its sender', 'BAD_SIGNATURE', frameOf({ ...good, signature: KEYS.coder.sign(good.m) }), at),
      no('with another payload', 'PAYLOAD_MISMATCH', frameOf({ ...good, payload: Buffer.from('{}') }), at),
      no('with hops', 'MALFORMED', frameOf(good, [hop]), at),
      no('as a batch', 'MALFORMED', encodeBatch(single), at),
      no(
        'expired',
        'EXPIRED',
        frameOf(broadcast('broadcast 6', { timestamp: NOW - 700_000, expires_at: NOW - 600_001 })),
        at,
      ),
      no(
        'from the future',
        'EXPIRY_TOO_FAR',
        frameOf(broadcast('broadcast 7', { timestamp: NOW + 600_001, expires_at: NOW + 660_000 })),
        at,
      ),
    ],
  }
}

export function arrivalVectors(): Vector {
  const { accepted: heard, refused: unheard } = broadcasts()
  return {
    about:
      'Whole frames as they reach `receiver`, who knows every key of keys.json by its agent id, each judged alone, in the order of the wire text. `not_offered`: legal, but refused by a peer without that feature. `broadcasts`: frames of a gossip topic.',
    receiver: RECEIVER,
    accepted: accepted(),
    refused: refused(),
    not_offered: notOffered(),
    broadcasts: heard,
    refused_broadcasts: unheard,
  }
}
