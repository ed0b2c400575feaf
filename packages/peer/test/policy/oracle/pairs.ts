import type { SeededRandom } from '@hermes-peer/testkit'
import type { CallRule, PolicyDocument } from '../../../src/policy/document.ts'
import type { Subject } from '../../../src/policy/match.ts'

/** What is asked of one policy. */
export interface AskedRequest {
  readonly subjects: readonly Subject[]
  readonly capability: string
  readonly input: unknown
}

/** Most elements of a list that the oracle unrolls. */
export const ELEMENTS = 2

/** Lists within one another that it unrolls at each step: more would double what has to be written for each. */
export const LISTS = 1

// Few words, so that rules and requests meet.
const AGENTS = ['a', 'b', 'c/d']
const TEAMS = ['x', 'y', undefined]
const ROLES = ['r', 's']
const CAPABILITIES = ['pay', 'pay@2', 'payment', 'report.week', 'event:pay', 'topic:pay', 'hermes.flight']
const PATTERNS = [...CAPABILITIES, 'pay*', 'report.*', 'event:*', 'topic:p*', '*', '*']
const PRINCIPALS = [...AGENTS, 'team:x', 'team:y', 'role:r', 'role:s', '*', '*']
const TEXTS = ['eur', '5', 'usd', 'euro', '', '财务', '财务/一', 'a*b', 'a"b\\']
const NUMBERS = [-1, 0, 1, 5, 5.5, 10, 0.0001, 1e6]
const KEYS = ['a', 'b', 'x/y', 'A', '键']
const POINTERS = ['', '/a', '/a', '/b', '/x~1y', '/键', '/a/b', '/a/a', '/b/x~1y']

type Constraint = NonNullable<CallRule['constraints']>[string]

/** One policy with what is asked of it. */
export function generate(random: SeededRandom, requests: number): { policy: PolicyDocument; asked: AskedRequest[] } {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random.next() * list.length)] as T
  const chance = (share: number): boolean => random.next() < share
  const some = <T>(least: number, most: number, make: () => T): T[] =>
    Array.from({ length: least + Math.floor(random.next() * (most - least + 1)) }, make)
  const scalar = (): string | number | boolean | null =>
    chance(0.4) ? pick(TEXTS) : chance(0.7) ? pick(NUMBERS) : pick([true, false, null])
  const oneOrMore = (list: readonly string[]): string | string[] =>
    chance(0.6) ? pick(list) : some(1, 3, () => pick(list))

  const constraint = () => {
    const made: Record<string, unknown> = {}
    const choice = random.next()
    if (choice < 0.35) made.equals = scalar()
    else if (choice < 0.6) made.one_of = some(1, 3, scalar)
    if (chance(0.3)) {
      const [low, high] = [pick(NUMBERS), pick(NUMBERS)].sort((one, other) => one - other)
      if (chance(0.7)) made.min = low
      if (chance(0.7)) made.max = high
    }
    if (chance(0.15)) made.prefix = pick(TEXTS.filter((text) => text !== ''))
    return Object.keys(made).length === 0 ? { one_of: [true, pick(TEXTS), pick(NUMBERS)] } : made
  }
  const rule = (): CallRule => ({
    principal: oneOrMore(PRINCIPALS),
    capability: oneOrMore(PATTERNS),
    ...(chance(0.2) ? { effect: 'deny' as const } : chance(0.2) ? { effect: 'allow' as const } : {}),
    ...(chance(0.65)
      ? { constraints: Object.fromEntries(some(1, 2, () => [pick(POINTERS), constraint()] as const)) as never }
      : {}),
  })
  const policy: PolicyDocument = { serve: some(0, 5, rule) }

  /** Values that the constraints speak of come up often, so that they are met as well as missed. */
  const spoken = (policy.serve ?? []).flatMap(({ constraints }) =>
    Object.values(constraints ?? {}).flatMap((one) => [
      one.equals,
      ...(one.one_of ?? []),
      one.min,
      one.max,
      one.prefix,
    ]),
  )
  const value = (depth: number, lists: number): unknown => {
    if (lists > 0 && chance(0.25)) return some(0, ELEMENTS, () => value(depth, lists - 1))
    if (depth > 0 && chance(depth === 3 ? 0.85 : 0.35)) {
      return Object.fromEntries(some(0, 4, () => [pick(KEYS), value(depth - 1, LISTS)] as const))
    }
    const said = spoken.length > 0 && chance(0.6) ? pick(spoken) : undefined
    return said === undefined ? scalar() : said
  }
  const subject = (): Subject => {
    const team = pick(TEAMS)
    return {
      agentId: pick(AGENTS),
      membership: chance(0.1)
        ? undefined
        : { ...(team === undefined ? {} : { team }), roles: ROLES.filter(() => chance(0.4)) },
    }
  }
  /** A value that the constraint lets through, and what is near to it: in a list, beside others, of another type, missing. */
  const near = ({ equals, one_of = [], min, max, prefix }: Constraint): unknown => {
    const fitting = equals ?? one_of[0] ?? (prefix === undefined ? (min ?? max ?? 0) : prefix)
    if (chance(0.5)) return fitting
    return pick<() => unknown>([
      () => [fitting],
      () => [fitting, fitting],
      () => [fitting, scalar()],
      () => [scalar(), fitting],
      () => [],
      () => (typeof fitting === 'number' ? String(fitting) : 5),
      () => ({ a: fitting }),
      () => (typeof fitting === 'number' ? fitting + pick([1, -1]) : scalar()),
      () => undefined,
    ])()
  }
  /** An input made for one rule. */
  const aimed = ({ constraints = {} }: CallRule): unknown => {
    let input: unknown
    for (const [pointer, constraint] of Object.entries(constraints)) {
      const steps = pointer
        .split('/')
        .slice(1)
        .map((step) => step.replace('~1', '/'))
      const put = (into: unknown, [step, ...rest]: string[]): unknown => {
        if (step === undefined) return near(constraint)
        const fields = typeof into === 'object' && into !== null && !Array.isArray(into) ? (into as object) : {}
        const made = put((fields as Record<string, unknown>)[step], rest)
        const object = made === undefined ? { ...fields } : { ...fields, [step]: made }
        return rest.length > 0 && chance(0.15) ? [object, object].slice(0, 1 + Math.floor(random.next() * 2)) : object
      }
      input = put(input, steps)
    }
    return input ?? value(3, LISTS)
  }
  /** Somebody whom the rule names. */
  const named = ({ principal }: CallRule): Subject => {
    const text = [principal].flat()[0] as string
    const { agentId, membership } = subject()
    const { team, roles = [] } = membership ?? {}
    const [kind, name] = text.split(':') as [string, string | undefined]
    if (kind === 'team' && name !== undefined) return { agentId, membership: { team: name, roles } }
    if (kind === 'role' && name !== undefined) {
      return { agentId, membership: { ...(team === undefined ? {} : { team }), roles: [...new Set([...roles, name])] } }
    }
    return { agentId: text === '*' ? agentId : text, membership }
  }
  const meant = (text: string): string => (text.endsWith('*') ? pick(CAPABILITIES) : text)
  const asked = some(requests, requests, () => {
    const rules = policy.serve ?? []
    const target = rules.length > 0 && chance(0.7) ? pick(rules) : undefined
    const capability = chance(0.05) ? 'hermes.manifest' : pick(CAPABILITIES)
    const one = (): Subject => (target && chance(0.8) ? named(target) : subject())
    return {
      subjects: chance(0.7) ? [one()] : some(2, 3, one),
      capability: target ? meant([target.capability].flat()[0] as string) : capability,
      input: target ? aimed(target) : value(3, LISTS),
    }
  })
  return { policy, asked }
}
