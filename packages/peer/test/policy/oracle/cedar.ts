import { createRequire } from 'node:module'
import type { CallRule, PolicyDocument } from '../../../src/policy/document.ts'
import type { Subject } from '../../../src/policy/match.ts'
import { type AskedRequest, ELEMENTS, LISTS } from './pairs.ts'

// The documented meaning of a policy (src/policy/document.ts) said once more in Cedar, an authorisation language with an engine of its
// own. Of our code only types are used here.
//
// Cedar has neither three-valued logic nor "each element of a list", and what it cannot evaluate it leaves out, which would let a
// denial be escaped. So each JSON value is a record that says its type, and for each constraint two conditions that never fail are
// written: that it is known to hold, and that it is known not to hold. Lists are unrolled.

const { preparsePolicySet, statefulIsAuthorized } = createRequire(import.meta.url)(
  '@cedar-policy/cedar-wasm/nodejs',
) as typeof import('@cedar-policy/cedar-wasm')

type Constraint = NonNullable<CallRule['constraints']>[string]
type Scalar = string | number | boolean | null

/** Answers as the policy should. */
export function oracleOf(policy: PolicyDocument, name: string): (request: AskedRequest) => boolean {
  const rules = (policy.serve ?? []).map((rule, index) => [`rule-${index}`, cedarRule(rule)] as const)
  const parsed = preparsePolicySet(name, { staticPolicies: Object.fromEntries(rules) })
  if (parsed.type !== 'success') throw new Error(JSON.stringify(parsed.errors))
  return ({ subjects, capability, input }) => {
    // What every peer offers has guards of its own, but for one.
    if (capability.startsWith('hermes.') && capability !== 'hermes.flight') return true
    return subjects.every((subject) => allows(name, subject, capability, input))
  }
}

function allows(name: string, { agentId, membership }: Subject, capability: string, input: unknown): boolean {
  const parents = [
    ...(membership?.team === undefined ? [] : [{ type: 'Team', id: membership.team }]),
    ...(membership?.roles ?? []).map((id) => ({ type: 'Role', id })),
  ]
  const answer = statefulIsAuthorized({
    principal: { type: 'Agent', id: agentId },
    action: { type: 'Action', id: 'use' },
    resource: { type: 'Capability', id: capability },
    context: { input: tagged(input) } as never,
    entities: [
      { uid: { type: 'Agent', id: agentId }, attrs: {}, parents },
      { uid: { type: 'Capability', id: capability }, attrs: { name: capability }, parents: [] },
    ],
    preparsedPolicySetId: name,
  })
  if (answer.type !== 'success') throw new Error(JSON.stringify(answer.errors))
  // A condition that cannot be evaluated would count for nothing: the translation must not have one.
  const { decision, diagnostics } = answer.response
  if (diagnostics.errors.length > 0) throw new Error(JSON.stringify(diagnostics.errors))
  return decision === 'allow'
}

function tagged(value: unknown): unknown {
  if (typeof value === 'string') return { t: 'text', text: value }
  if (typeof value === 'number') return { t: 'number', number: { __extn: { fn: 'decimal', arg: value.toFixed(4) } } }
  if (typeof value === 'boolean') return { t: 'boolean', boolean: value }
  if (value === null) return { t: 'null' }
  if (Array.isArray(value)) {
    return {
      t: 'list',
      length: value.length,
      at: Object.fromEntries(value.map((item, index) => [`i${index}`, tagged(item)])),
    }
  }
  return {
    t: 'object',
    fields: Object.fromEntries(Object.entries(value as object).map(([key, item]) => [key, tagged(item)])),
  }
}

function cedarRule({ principal, capability, effect, constraints = {} }: CallRule): string {
  const who = [principal].flat().map(principalCondition).join(' || ')
  const what = [capability].flat().map(capabilityCondition).join(' || ')
  const places = Object.entries(constraints)
  const holds = places.map(([pointer, one]) => known(one, pointer, 'holds'))
  const fails = places.map(([pointer, one]) => known(one, pointer, 'fails'))
  const input = effect === 'deny' ? `!(${fails.join(' || ') || 'false'})` : `(${holds.join(' && ') || 'true'})`
  return `${effect === 'deny' ? 'forbid' : 'permit'}(principal, action, resource) when { (${who}) && (${what}) && ${input} };`
}

function principalCondition(text: string): string {
  if (text === '*') return 'true'
  if (text.startsWith('team:')) return `principal in Team::${quoted(text.slice(5))}`
  if (text.startsWith('role:')) return `principal in Role::${quoted(text.slice(5))}`
  return `principal == Agent::${quoted(text)}`
}

function capabilityCondition(text: string): string {
  if (!text.endsWith('*')) return `resource.name == ${quoted(text)}`
  return `(resource.name like ${pattern(text.slice(0, -1))} && !(resource.name like "hermes.*"))`
}

type Side = 'holds' | 'fails'

function known(constraint: Constraint, pointer: string, side: Side): string {
  const steps = pointer
    .split('/')
    .slice(1)
    .map((step) => step.replace(/~1/g, '/').replace(/~0/g, '~'))
  return at('context.input', steps, LISTS, (value) => whole(constraint, value, side))
}

/** The condition on every value that stands where the steps lead; false where there is none. `lists`: how many may still come here. */
function at(value: string, steps: readonly string[], lists: number, then: (value: string) => string): string {
  const [step, ...rest] = steps
  const below = (field: string) => at(`${value}.fields[${field}]`, rest, LISTS, then)
  const plain =
    step === undefined
      ? then(value)
      : `(${value}.t == "object" && ${value}.fields has ${quoted(step)} && ${below(quoted(step))})`
  if (lists === 0) return `(${value}.t != "list" && ${plain})`
  const elements = Array.from(
    { length: ELEMENTS },
    (_, index) => `(${value}.length <= ${index} || ${at(`${value}.at.i${index}`, steps, lists - 1, then)})`,
  )
  return `(if ${value}.t == "list" then (${value}.length > 0 && ${elements.join(' && ')}) else ${plain})`
}

/** All that the constraint says holds; or something that it says is known not to. */
function whole(constraint: Constraint, value: string, side: Side): string {
  const { equals, one_of, min, max, prefix } = constraint
  const isText = `${value}.t == "text"`
  const isNumber = `${value}.t == "number"`
  const parts: { holds: string; fails: string }[] = []
  const oneOf = (values: readonly Scalar[]) => {
    const same = values.map((one) => `(${typed(one, value)} && ${equal(one, value)})`).join(' || ')
    const comparable = values.map((one) => `(${typed(one, value)})`).join(' || ')
    parts.push({ holds: `(${same})`, fails: `((${comparable}) && !(${same}))` })
  }
  if (equals !== undefined) oneOf([equals])
  if (one_of !== undefined) oneOf(one_of)
  if (min !== undefined) {
    parts.push({
      holds: `(${isNumber} && ${value}.number.greaterThanOrEqual(${decimal(min)}))`,
      fails: `(${isNumber} && ${value}.number.lessThan(${decimal(min)}))`,
    })
  }
  if (max !== undefined) {
    parts.push({
      holds: `(${isNumber} && ${value}.number.lessThanOrEqual(${decimal(max)}))`,
      fails: `(${isNumber} && ${value}.number.greaterThan(${decimal(max)}))`,
    })
  }
  if (prefix !== undefined) {
    parts.push({
      holds: `(${isText} && ${value}.text like ${pattern(prefix)})`,
      fails: `(${isText} && !(${value}.text like ${pattern(prefix)}))`,
    })
  }
  return `(${parts.map((part) => part[side]).join(side === 'holds' ? ' && ' : ' || ')})`
}

const typed = (scalar: Scalar, value: string): string =>
  `${value}.t == "${scalar === null ? 'null' : typeof scalar === 'string' ? 'text' : typeof scalar}"`

function equal(scalar: Scalar, value: string): string {
  if (scalar === null) return 'true'
  if (typeof scalar === 'string') return `${value}.text == ${quoted(scalar)}`
  return typeof scalar === 'number' ? `${value}.number == ${decimal(scalar)}` : `${value}.boolean == ${scalar}`
}

const decimal = (number: number): string => `decimal("${number.toFixed(4)}")`
const quoted = (text: string): string => `"${text.replace(/["\\]/g, '\\$&')}"`
/** What begins so: a `*` of the text itself is escaped. */
const pattern = (text: string): string => `"${text.replace(/["\\*]/g, '\\$&')}*"`
