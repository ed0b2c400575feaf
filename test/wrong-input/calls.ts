import { peerIdOf, signingKey } from '@hermes-peer/protocol'
import { type CallOptions, capability, createPeer, type Query } from 'hermes-peer'
import * as z from 'zod'
import type { Case, Edge, Scene } from './case.ts'

/** Takes anything that is data, and returns what the handler is told to. */
export const odd = capability('odd', { description: 'Odd.', input: z.any(), output: z.any(), effects: 'none' })
export const add = capability('add', {
  description: 'Adds.',
  input: z.object({ a: z.number(), b: z.number() }),
  output: z.object({ sum: z.number() }),
  effects: 'none',
})

const circular = () => {
  const value: Record<string, unknown> = { list: [] }
  ;(value.list as unknown[]).push(value)
  return value
}
const deep = (levels: number): unknown => (levels === 0 ? 1 : { in: deep(levels - 1) })

/** Values that no payload can carry, and how the message calls them. */
const UNSENDABLE: readonly [string, () => unknown, RegExp | string][] = [
  ['a BigInt', () => ({ n: 5n }), /\/n.*bigint.*string/],
  ['a circular object', circular, /contains itself/],
  ['a Symbol', () => ({ s: Symbol('x') }), /\/s.*symbol/],
  ['a function', () => ({ f: () => 1 }), /\/f.*function/],
  ['a Date', () => ({ at: new Date(0) }), /\/at.*Date.*toISOString/],
  ['a Map', () => ({ m: new Map([['a', 1]]) }), /\/m.*Map.*fromEntries/],
  ['1e400', () => ({ x: Number('1e400') }), /\/x.*Infinity/],
  ['NaN', () => [0, Number.NaN], /\/1.*NaN/],
  ['undefined in a list', () => [undefined], /\/0.*undefined.*null/],
  ['an integer that is not exact', () => ({ id: 2 ** 53 }), /\/id.*string/],
  ['half of a character', () => ({ text: '文'.concat('\ud83d') }), /\/text.*surrogate/],
  ['33 levels', () => deep(40), /32 levels/],
  ['a key that is a prototype', () => JSON.parse('{"__proto__": {"admin": true}}'), /__proto__/],
  ['an Error', () => ({ e: new Error('x') }), /\/e.*Error/],
  ['a promise', () => ({ p: Promise.resolve(1) }), /\/p.*await/],
  ['a Buffer', () => ({ b: Buffer.from('x') }), /\/b.*base64/],
]

/** What the handler of `odd` returns for each of them. */
export function oddResult(name: unknown): unknown {
  if (name === 'too large') return 'x'.repeat(2 * 1024 * 1024)
  return UNSENDABLE.find(([one]) => one === name)?.[1]() ?? null
}

const callOption = (field: string, name: string, value: unknown, more: Partial<Case> = {}): Case => ({
  name: `${field} ${name}`,
  code: 'INVALID_OPTION',
  names: field,
  run: ({ desk }) => desk.call(add, { a: 1, b: 2 }, { [field]: value } as CallOptions),
  ...more,
})

export const callOptionsEdge: Edge = {
  edge: 'call options',
  cases: [
    callOption('timeoutMs', 'of zero', 0, { remedy: /milliseconds/ }),
    callOption('timeoutMs', 'that is negative', -5),
    callOption('timeoutMs', 'that is no number', Number.NaN),
    callOption('timeoutMs', 'that is a text', '5s'),
    callOption('timeoutMs', 'of two days', 2 * 86_400_000, { remedy: /24 hours/ }),
    callOption('priority', 'of 9', 9, { remedy: /1, 2, 3, 4 or 5/ }),
    callOption('priority', 'of 2.5', 2.5),
    callOption('correlationId', 'of one’s own making', 'order-5', { remedy: /corr_/ }),
    callOption('correlationId', 'with a path in it', 'corr_../../../../etcx', { remedy: /corr_/ }),
    callOption('agent', 'in upper case', 'Worker', { code: 'INVALID_NAME', remedy: /ASCII|segments/i }),
    callOption('agent', 'in Chinese', '工人', { code: 'INVALID_NAME', names: /^agent: [\x20-\x7e]+$/ }),
    callOption('where', 'that is a text', 'language=ts', { remedy: /labels to texts/ }),
    callOption('where', 'that is a list', ['ts']),
    callOption('where', 'with a number', { version: 5 }),
    callOption('context', 'that is a list', [1], { remedy: /object/ }),
    callOption('ordered', 'that is a text', 'no', { remedy: /true or false/ }),
    callOption('signal', 'that is a controller', new AbortController(), { remedy: /AbortSignal/ }),
    callOption('timeout', 'misspelt', 5, { remedy: 'timeoutMs' }),
    callOption('timeoutMs', 'of callDynamic', 0, { run: ({ desk }) => desk.callDynamic('add', {}, { timeoutMs: 0 }) }),
  ],
}

const payload = (name: string, value: () => unknown, names: RegExp | string): Case => ({
  name,
  code: 'INVALID_PAYLOAD',
  names,
  run: ({ desk }) => desk.call(odd, value()),
})

export const inputEdge: Edge = {
  edge: 'input',
  cases: [
    {
      name: 'a field of the wrong type',
      code: 'VALIDATION_ERROR',
      names: /^input\/b: /,
      run: ({ desk }) => desk.call(add, { a: 1, b: 'two' as never }),
    },
    {
      name: 'nothing',
      code: 'VALIDATION_ERROR',
      names: /^input/,
      run: ({ desk }) => desk.call(add, undefined as never),
    },
    {
      name: 'what the provider’s schema does not take, called by name',
      code: 'NO_CANDIDATE',
      names: /worker.*\/b/,
      remedy: /reason/,
      run: ({ desk }) => desk.callDynamic('add', { a: 1, b: 'two' }),
    },
    {
      name: 'a capability name in Chinese',
      code: 'INVALID_NAME',
      names: 'capability',
      run: ({ desk }) => desk.callDynamic('加法', {}),
    },
    {
      name: 'more than a message holds',
      code: 'PAYLOAD_TOO_LARGE',
      names: /\d{7} bytes.*limit is 1048576/,
      remedy: /less/,
      run: ({ desk }) => desk.call(odd, 'x'.repeat(1024 * 1024 + 1)),
    },
    {
      name: 'a context with a BigInt',
      code: 'INVALID_PAYLOAD',
      names: /context\/n/,
      run: ({ desk }) => desk.call(add, { a: 1, b: 1 }, { context: { n: 1n } }),
    },
    ...UNSENDABLE.map(([name, value, names]) => payload(name, value, names)),
  ],
}

const result = (name: string, names: RegExp | string): Case => ({
  name,
  code: 'INVALID_RESULT',
  names,
  run: ({ desk }) => desk.call(odd, name),
})

export const resultEdge: Edge = {
  edge: 'handler results',
  cases: [
    ...UNSENDABLE.map(([name, , names]) => result(name, names)),
    result('too large', /\d{7} bytes.*limit is 1048576/),
  ],
}

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
    ...query('a misspelt field', { capability: 'add', wher: {} }, 'wher'),
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
