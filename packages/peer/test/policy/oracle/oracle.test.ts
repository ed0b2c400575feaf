import { seededRandom } from '@hermes-peer/testkit'
import { beforeAll, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { evaluate } from '../../../src/policy/evaluate.ts'
import type { Policy } from '../../../src/policy/read.ts'
import { parsePolicy } from '../../../src/policy/source.ts'
import { oracleOf } from './cedar.ts'
import { type AskedRequest, generate } from './pairs.ts'

const COUNTS = { test: 1_000, ci: 10_000, long: 50_000 }
const count = COUNTS[(process.env.HERMES_TEST_TIER ?? 'test') as keyof typeof COUNTS] ?? COUNTS.test
const REQUESTS = 5

interface Pair {
  readonly policy: Policy
  readonly request: AskedRequest
  readonly expected: boolean
}

/** Random pairs with what the oracle says of them. */
async function pairsOf(count: number, seed: string): Promise<Pair[]> {
  const random = seededRandom(seed)
  const pairs: Pair[] = []
  while (pairs.length < count) {
    const { policy: document, asked } = generate(random, REQUESTS)
    const oracle = oracleOf(document, 'policy')
    // As it would stand in a file.
    const policy = await parsePolicy(stringify(document))
    for (const request of asked) pairs.push({ policy, request, expected: oracle(request) })
  }
  return pairs
}

type Judge = (policy: Policy, request: AskedRequest) => boolean
const differing = (pairs: readonly Pair[], judge: Judge) =>
  pairs.filter(({ policy, request, expected }) => judge(policy, request) !== expected)

const ours = (policy: Policy, { subjects, capability, input }: AskedRequest): boolean =>
  evaluate(policy, { side: 'serve', subjects, capability, input: { value: input } }).allowed

describe('threat: constraint bypass — oracle vs Cedar', () => {
  let pairs: Pair[] = []
  beforeAll(async () => {
    pairs = await pairsOf(count, 'policy')
  }, 600_000)

  it(`agrees on ${count} random policies and requests`, () => {
    expect(differing(pairs, ours).slice(0, 3)).toEqual([])
    // Neither answer is rare, else agreeing would say little.
    const allowed = pairs.filter(({ expected }) => expected).length
    expect(Math.min(allowed, pairs.length - allowed) / pairs.length).toBeGreaterThan(0.15)
  })

  it('what is denied by shape is denied whatever the input is', () => {
    const byShape: Judge = (policy, request) => {
      const { subjects, capability } = request
      return evaluate(policy, { side: 'serve', subjects, capability }).allowed && ours(policy, request)
    }
    expect(differing(pairs, byShape)).toEqual([])
  })

  /** The same data with each of its values as that function sees it, the innermost first. */
  const seen = (value: unknown, as: (value: unknown) => unknown): unknown => {
    if (typeof value !== 'object' || value === null) return as(value)
    if (Array.isArray(value)) return as(value.map((item) => seen(item, as)))
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, seen(item, as)]))
  }
  const seeing =
    (as: (value: unknown) => unknown) =>
    (policy: Policy, request: AskedRequest): boolean =>
      ours(policy, { ...request, input: seen(request.input, as) })
  it.each<[string, Judge]>([
    [
      'judges the first element of a list alone',
      seeing((value) => (Array.isArray(value) ? (value[0] ?? null) : value)),
    ],
    [
      'lets an empty list pass',
      (policy, request) => {
        const empty = (steps: readonly string[]) => {
          const value = steps.reduce<unknown>(
            (at, step) => (at as Record<string, unknown> | undefined)?.[step],
            request.input,
          )
          return Array.isArray(value) && value.length === 0
        }
        const serve = policy.serve.map((rule) => ({
          ...rule,
          constraints: rule.constraints.filter(({ steps }) => !empty(steps)),
        }))
        return ours({ ...policy, serve }, request)
      },
    ],
    ['takes texts for the numbers in them', seeing((value) => (value === '5' ? 5 : value))],
    [
      'forgets the forwarders',
      (policy, request) => ours(policy, { ...request, subjects: request.subjects.slice(0, 1) }),
    ],
    [
      'forgets roles',
      (policy, request) => {
        const subjects = request.subjects.map(({ agentId, membership }) => ({
          agentId,
          membership: membership && { ...membership, roles: [] },
        }))
        return ours(policy, { ...request, subjects })
      },
    ],
    [
      'lets the first rule decide',
      ({ serve, ...rest }, request) =>
        serve.some((rule) => rule.effect === 'allow' && ours({ ...rest, serve: [rule] }, request)),
    ],
    [
      'takes what is missing in a denial for escaped',
      (policy, request) => {
        const strict = policy.serve.map((rule) =>
          rule.effect === 'deny' ? { ...rule, effect: 'allow' as const } : rule,
        )
        const denied = strict.some(
          (rule, index) => policy.serve[index]?.effect === 'deny' && ours({ ...policy, serve: [rule] }, request),
        )
        return !denied && ours({ ...policy, serve: policy.serve.filter(({ effect }) => effect === 'allow') }, request)
      },
    ],
  ])('catches an evaluator that %s', (_, judge) => {
    expect(differing(pairs, judge).length).toBeGreaterThan(0)
  })
})
