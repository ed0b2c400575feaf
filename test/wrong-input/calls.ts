import { type CallOptions, capability } from 'hermes-peer'
import * as z from 'zod'
import type { Case, Edge } from './case.ts'

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
  if (name === 'too large') return 'x'.repeat(64 * 1024 * 1024)
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
      names: /more than the 67108864 bytes/,
      remedy: /less/,
      run: ({ desk }) => desk.call(odd, 'x'.repeat(64 * 1024 * 1024 + 1)),
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
    result('too large', /more than the 67108864 bytes/),
  ],
}
