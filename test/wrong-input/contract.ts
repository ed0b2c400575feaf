import { type Capability, capability, createPeer } from 'hermes-peer'
import * as z from 'zod'
import type { Case, Edge } from './case.ts'

const spec = { description: 'Works.', input: z.object({ n: z.number() }), output: z.null() }
const contract =
  (more: object, name: unknown = 'work') =>
  () =>
    capability(name as string, { ...spec, ...more } as typeof spec)

const field = (name: string, more: object, names: RegExp | string, rest: Partial<Case> = {}): Case => ({
  name,
  code: 'INVALID_CONTRACT',
  names,
  run: contract(more),
  ...rest,
})
const named = (name: string, value: unknown): Case => ({
  name: `a name ${name}`,
  code: 'INVALID_NAME',
  names: /^capability: [\x20-\x7e]+$/,
  remedy: /Lower-case ASCII/,
  run: contract({}, value),
})
const provided = (
  name: string,
  value: unknown,
  handler: unknown,
  names: RegExp | string,
  more: Partial<Case> = {},
): Case => ({
  name,
  code: 'INVALID_CONTRACT',
  names,
  run: () => createPeer({ agentId: 'a' }).provide(value as Capability, handler as never),
  ...more,
})
const work = capability('work', spec)

export const contractEdge: Edge = {
  edge: 'contract',
  cases: [
    named('in upper case', 'Code_Review'),
    named('in Chinese', '代码审查'),
    named('with a look-alike', 'cоde_review'),
    named('with a space', 'code review'),
    named('with a slash', 'code/review'),
    named('that is missing', null),
    named('with the major that is never written', 'work@1'),
    named('with a major that is none', 'work@two'),
    {
      name: 'a name of the runtime',
      code: 'CAPABILITY_RESERVED',
      names: 'hermes.manifest',
      remedy: /another name/,
      run: contract({}, 'hermes.manifest'),
    },
    field('nothing', {}, 'contract', { run: () => capability('work', undefined as never) }),
    field('no description', { description: undefined }, /work.*description/),
    field('an empty description', { description: '' }, 'description'),
    field('no input', { input: undefined }, /input.*missing.*zod/),
    field('a JSON Schema instead of a schema', { input: { type: 'object' } }, /input.*Standard Schema/),
    field('a date', { input: z.object({ due: z.date() }) }, /input\/.*due.*text for dates/),
    field('a bigint', { output: z.bigint() }, /output.*bigint/),
    field(
      'a Map deep inside',
      { output: z.object({ a: z.object({ b: z.map(z.string(), z.string()) }) }) },
      /output\/.*a\/.*b/,
    ),
    field('a function', { input: z.object({ f: z.function() as never }) }, /input/),
    field('a pattern that no RE2 runs', { input: z.object({ s: z.string().regex(/(?<=a)b/) }) }, /input\/.*s/),
    field('effects that do not exist', { effects: 'sometimes' }, /effects.*none, idempotent or once/),
    field('an error in lower case', { errors: { too_large: z.null() } }, /errors\/too_large.*TOO_LONG/),
    field('an error with a code of the runtime', { errors: { BUSY: z.null() } }, /errors\/BUSY.*another name/),
    field('an error without schema', { errors: { LATE: {} } }, /errors\/LATE/),
    field('a label that is a number', { labels: { version: 5 } }, /labels\/version/),
    field('a label with a name in Chinese', { labels: { 语言: 'ts' } }, /labels/),
    field('no room to run', { constraints: { maxConcurrency: 0 } }, /constraints\/maxConcurrency.*integer from 1/),
    field(
      'a constraint that does not exist',
      { constraints: { max_concurrency: 5 } },
      /max_concurrency.*maxConcurrency/,
    ),
    field('a misspelt field', { ouput: z.null() }, /ouput.*output/),
    provided('provide without a contract', undefined, () => null, /contract.*capability\(\)/),
    provided('provide with a look-alike of a contract', { name: 'work' }, () => null, /contract.*capability\(\)/),
    provided('provide without a handler', work, undefined, /handler.*work.*function/),
    provided('provide twice', undefined, undefined, /\bwork\b/, {
      remedy: /one handler/,
      run: () =>
        createPeer({ agentId: 'a' })
          .provide(work, () => null)
          .provide(work, () => null),
    }),
    provided('call without a contract', undefined, undefined, /contract.*capability\(\)/, {
      run: ({ desk }) => desk.call(undefined as never, {} as never),
    }),
    provided('call with a name instead of a contract', undefined, undefined, /contract.*capability\(\)/, {
      remedy: /callDynamic|capability\(\)/,
      run: ({ desk }) => desk.call('work' as never, {} as never),
    }),
  ],
}
