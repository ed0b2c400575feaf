import { peerIdOf, signingKey } from '@hermes-peer/protocol'
import { createPeer, type Query } from 'hermes-peer'
import { add } from './calls.ts'
import type { Case, Edge, Scene } from './case.ts'

/** A peer id of a key that nobody here has. */
const SOMEBODY = peerIdOf(signingKey(new Uint8Array(32).fill(7)).publicKey.raw)

const address = (name: string, value: unknown, more: Partial<Case> = {}): Case => ({
  name,
  code: 'INVALID_ADDRESS',
  names: /address/,
  remedy: /\/ip4\/127\.0\.0\.1\/tcp\/4001/,
  run: ({ desk }) => desk.connect(value as string),
  ...more,
})

export const addressEdge: Edge = {
  edge: 'address',
  cases: [
    address('nothing', undefined),
    address('empty', ''),
    address('host and port', '127.0.0.1:4001'),
    address('a URL', 'tcp://127.0.0.1:4001'),
    address('a port that is none', '/ip4/127.0.0.1/tcp/port'),
    address('an address that is none', '/ip4/300.0.0.1/tcp/1'),
    address('a peer id that is none', '/ip4/127.0.0.1/tcp/4001/p2p/desk'),
    address('Chinese', '/主机/127.0.0.1'),
    address('where nobody listens', '/ip4/127.0.0.1/tcp/1', {
      code: 'PEER_UNREACHABLE',
      names: /\/ip4\/127\.0\.0\.1\/tcp\/1/,
      remedy: /reason/,
    }),
    address('without an address of TCP', '/ip4/127.0.0.1/udp/1/quic-v1', {
      code: 'PEER_UNREACHABLE',
      names: /udp/,
      remedy: /reason/,
    }),
    address('of another peer than it names', '', {
      code: 'PEER_UNREACHABLE',
      names: /tcp/,
      remedy: /reason/,
      run: ({ desk, worker }) => desk.connect((worker.addresses[0] as string).replace(/p2p\/.*/, `p2p/${SOMEBODY}`)),
    }),
  ],
}

const emit = (name: string, names: RegExp | string, run: Case['run'], more: Partial<Case> = {}): Case => ({
  name,
  code: 'INVALID_OPTION',
  names,
  run,
  ...more,
})
const to =
  (target: unknown, data: unknown = {}, options: object = {}) =>
  ({ desk }: Scene) =>
    desk.emit(target as { topic: string }, data, options)

export const emitEdge: Edge = {
  edge: 'emit',
  cases: [
    emit('to nothing', /target/, to(undefined)),
    emit('to null', /target/, to(null)),
    emit('to neither agent nor topic', /target.*topic/, to({})),
    emit('a topic in upper case', 'topic', to({ topic: 'News' }), { code: 'INVALID_NAME', remedy: /Lower-case/ }),
    emit('a topic in Chinese', /^topic: [\x20-\x7e]+$/, to({ topic: '新闻' }), { code: 'INVALID_NAME' }),
    emit('a topic with a path', 'topic', to({ topic: '../presence/1' }), { code: 'INVALID_NAME' }),
    emit('an agent in upper case', 'agent', to({ agent: 'Worker', event: 'x' }), { code: 'INVALID_NAME' }),
    emit('without an event name', /target.*event/, to({ agent: 'worker' })),
    emit('an event in upper case', 'event', to({ agent: 'worker', event: 'Done' }), { code: 'INVALID_NAME' }),
    emit('to an agent that nobody knows', 'ghost', to({ agent: 'ghost', event: 'x' }), { code: 'PEER_UNREACHABLE' }),
    emit('a BigInt to an agent', /data\/n/, to({ agent: 'worker', event: 'x' }, { n: 1n }), {
      code: 'INVALID_PAYLOAD',
    }),
    emit('a BigInt to a topic', /data\/n/, to({ topic: 'news' }, { n: 1n }), { code: 'INVALID_PAYLOAD' }),
    emit('more than a broadcast holds', /limit is 65536/, to({ topic: 'news' }, 'x'.repeat(70_000)), {
      code: 'PAYLOAD_TOO_LARGE',
      remedy: /less/,
    }),
    emit('more than a message holds', /limit is 1048576/, to({ agent: 'worker', event: 'x' }, 'x'.repeat(1_100_000)), {
      code: 'PAYLOAD_TOO_LARGE',
    }),
    emit('a negative time to an agent', 'timeoutMs', to({ agent: 'worker', event: 'x' }, {}, { timeoutMs: -1 })),
    emit('a negative time to a topic', 'timeoutMs', to({ topic: 'news' }, {}, { timeoutMs: -1 })),
  ],
}

const query = (name: string, value: unknown, names: RegExp | string, more: Partial<Case> = {}): readonly Case[] => [
  { name: `find ${name}`, code: 'INVALID_OPTION', names, run: ({ desk }) => desk.find(value as Query), ...more },
  {
    name: `watch ${name}`,
    code: 'INVALID_OPTION',
    names,
    run: ({ desk }) => desk.watch(value as Query, () => undefined),
    ...more,
  },
]

export const queryEdge: Edge = {
  edge: 'find and watch',
  cases: [
    ...query('nothing', undefined, 'query'),
    ...query('that asks for nothing', {}, /query.*capability or an agent/),
    ...query('a capability in Chinese', { capability: '审查' }, /^capability: [\x20-\x7e]+$/, {
      code: 'INVALID_NAME',
      remedy: /ASCII/,
    }),
    ...query('an agent with a look-alike', { agent: 'wоrker' }, 'agent', { code: 'INVALID_NAME' }),
    ...query('labels that are numbers', { capability: 'add', where: { version: 5 } }, 'where'),
    ...query('an empty intent', { intent: ' ' }, 'intent'),
    ...query('an intent that is a book', { intent: 'x'.repeat(2049) }, 'intent'),
    ...query('an SLA that is a number', { capability: 'add', sla: 500 }, 'sla'),
    ...query('an SLA of a condition that is none', { capability: 'add', sla: { p95Ms: 1 } }, /sla\.p95Ms.*p99Ms/),
    ...query('an SLA of more than all calls', { capability: 'add', sla: { success: 99 } }, 'sla.success'),
    ...query('a misspelt field', { capability: 'add', wher: {} }, 'wher'),
    {
      name: 'callDynamic by a target that is none',
      code: 'INVALID_OPTION',
      names: 'target',
      run: ({ desk }) => desk.callDynamic({} as never, 1),
    },
    {
      name: 'callDynamic by an intent and another one',
      code: 'INVALID_OPTION',
      names: 'intent',
      run: ({ desk }) => desk.callDynamic({ intent: 'add numbers' }, 1, { intent: 'subtract numbers' }),
    },
    {
      name: 'callDynamic by an intent of an agent whose name is none',
      code: 'INVALID_NAME',
      names: 'agent',
      run: ({ desk }) => desk.callDynamic({ intent: 'add numbers' }, 1, { agent: '审查员' }),
    },
    {
      name: 'watch without a listener',
      code: 'INVALID_OPTION',
      names: 'report',
      run: ({ desk }) => desk.watch({ agent: 'worker' }, undefined as never),
    },
    {
      name: 'find with a time that is none',
      code: 'INVALID_OPTION',
      names: 'timeoutMs',
      run: ({ desk }) => desk.find({ agent: 'worker' }, { timeoutMs: Number.NaN }),
    },
    {
      name: 'the manifest of a name that is none',
      code: 'INVALID_NAME',
      names: 'agentId',
      run: ({ desk }) => desk.manifest('Worker'),
    },
    {
      name: 'an event in upper case',
      code: 'INVALID_NAME',
      names: 'event',
      run: ({ desk }) => desk.onEvent('Done', () => undefined),
    },
    {
      name: 'a topic in Chinese to listen to',
      code: 'INVALID_NAME',
      names: 'topic',
      run: ({ desk }) => desk.onTopic('新闻', () => undefined),
    },
    {
      name: 'an event without a listener',
      code: 'INVALID_OPTION',
      names: 'receive',
      run: ({ desk }) => desk.onEvent('done', undefined as never),
    },
  ],
}

const early = (name: string, run: (peer: ReturnType<typeof createPeer>) => unknown): Case => ({
  name: `${name} before start`,
  code: 'NOT_STARTED',
  names: /not running/,
  remedy: 'start()',
  run: () => run(createPeer({ agentId: 'early' })),
})
const late = (name: string, run: (peer: ReturnType<typeof createPeer>) => unknown): Case => ({
  name: `${name} after stop`,
  code: 'STOPPED',
  names: /stopped/,
  remedy: /new peer/,
  run: async () => {
    const peer = createPeer({ agentId: 'late' })
    await peer.stop()
    return run(peer)
  },
})

export const lifecycleEdge: Edge = {
  edge: 'lifecycle',
  cases: [
    early('call', (peer) => peer.call(add, { a: 1, b: 1 })),
    early('callDynamic', (peer) => peer.callDynamic('add', {})),
    early('emit', (peer) => peer.emit({ topic: 'x' }, {})),
    early('find', (peer) => peer.find({ agent: 'a' })),
    early('watch', (peer) => peer.watch({ agent: 'a' }, () => undefined)),
    early('connect', (peer) => peer.connect('/ip4/127.0.0.1/tcp/1')),
    late('call', (peer) => peer.call(add, { a: 1, b: 1 })),
    late('start', (peer) => peer.start()),
    late('find', (peer) => peer.find({ agent: 'a' })),
  ],
}
