import { type Constraints, HermesError, type PlacedConstraint, placed, readConstraints } from '@hermes-peer/protocol'
import { POLICY_LIMITS, type PolicyDocument } from './document.ts'
import { type Located, locateObject, PolicyFault } from './located.ts'
import { type CapabilityPattern, capabilityPattern, type PrincipalTest, principalTest } from './match.ts'

/** One rule, ready to be judged by. */
export interface Rule {
  /** Where it stands: `policy.yaml:14`, or `policy: serve[2]` where the policy is an object. */
  readonly at: string
  readonly effect: 'allow' | 'deny'
  readonly principals: readonly PrincipalTest[]
  readonly capabilities: readonly CapabilityPattern[]
  readonly constraints: readonly PlacedConstraint[]
  readonly maxQps: number | undefined
  readonly maxConcurrency: number | undefined
}

/** A policy that has been read: its form holds. */
export interface Policy {
  /** What it was read from, as it is told to its operator. */
  readonly source: string
  readonly mode: 'enforce' | 'audit'
  readonly serve: readonly Rule[]
  /** Undefined: calls are not judged. */
  readonly call: readonly Rule[] | undefined
}

const FIELDS = ['version', 'mode', 'serve', 'call']
const RULE_FIELDS = ['principal', 'capability', 'effect', 'constraints', 'max_qps', 'max_concurrency']

/** Throws `INVALID_POLICY` that names the file, the line and the field. */
export function readPolicy(source: string, locate: () => Located): Policy {
  try {
    return policyOf(source, locate())
  } catch (error) {
    if (!(error instanceof PolicyFault)) throw error
    const { line, field, message } = error
    const place = line === undefined ? source : `${source}:${line}`
    throw new HermesError('INVALID_POLICY', {
      message: `${place}: ${[field, message].filter((part) => part !== '').join(' ')}`,
      details: { field, ...(line === undefined ? {} : { line }) },
    })
  }
}

/** Reads a policy that was given as an object. Throws `INVALID_POLICY` that names the field. */
export const policyOfObject = (document: PolicyDocument): Policy => readPolicy('policy', () => locateObject(document))

function policyOf(source: string, root: Located): Policy {
  const fields = fieldsOf(root, 'the policy', FIELDS)
  const version = fields.get('version')
  if (version && version.scalar !== 1) refuse(version, 'version', 'must be 1')
  const mode = fields.get('mode')
  if (mode && mode.scalar !== 'enforce' && mode.scalar !== 'audit') refuse(mode, 'mode', 'must be enforce or audit')
  const serve = fields.get('serve')
  const call = fields.get('call')
  return {
    source,
    mode: mode?.scalar === 'audit' ? 'audit' : 'enforce',
    serve: serve ? rulesOf(serve, 'serve', source) : [],
    call: call ? rulesOf(call, 'call', source) : undefined,
  }
}

function rulesOf(list: Located, side: 'serve' | 'call', source: string): readonly Rule[] {
  const { items } = list
  if (!items) return refuse(list, side, 'must be a list of rules')
  if (items.length > POLICY_LIMITS.rules)
    refuse(list, side, `has ${items.length} rules, the limit is ${POLICY_LIMITS.rules}`)
  return items.map((item, index) => ruleOf(item, `${side}[${index}]`, { side, source }))
}

function ruleOf(node: Located, where: string, { side, source }: { side: 'serve' | 'call'; source: string }): Rule {
  const fields = fieldsOf(node, where, RULE_FIELDS)
  const effect = fields.get('effect')
  if (effect && effect.scalar !== 'allow' && effect.scalar !== 'deny') {
    refuse(effect, `${where}.effect`, 'must be allow or deny')
  }
  const deny = effect?.scalar === 'deny'
  for (const field of ['max_qps', 'max_concurrency']) {
    const limit = fields.get(field)
    if (limit && side === 'call')
      refuse(limit, `${where}.${field}`, 'is a limit on those who call here: it belongs to serve')
    if (limit && deny) refuse(limit, `${where}.${field}`, 'limits what a rule allows, and this one denies')
  }
  const constraints = fields.get('constraints')
  return {
    at: node.line === undefined ? `${source}: ${where}` : `${source}:${node.line}`,
    effect: deny ? 'deny' : 'allow',
    principals: names(fields, 'principal', where, node, (text, fault) => {
      const test = principalTest(text)
      return test ?? fault('is no agent id, team:<name>, role:<name> or *')
    }),
    capabilities: names(fields, 'capability', where, node, (text, fault) => {
      const pattern = capabilityPattern(text)
      return 'fault' in pattern ? fault(pattern.fault) : pattern
    }),
    constraints: constraints ? placed(constraintsOf(constraints, `${where}.constraints`)) : [],
    maxQps: limitOf(fields, 'max_qps', where, (value) => value > 0 && value <= POLICY_LIMITS.qps),
    maxConcurrency: limitOf(
      fields,
      'max_concurrency',
      where,
      (value) => Number.isInteger(value) && value > 0 && value <= POLICY_LIMITS.concurrency,
    ),
  }
}

function fieldsOf(node: Located, where: string, known: readonly string[]): ReadonlyMap<string, Located> {
  const { fields } = node
  if (!fields) return refuse(node, where, `must be an object with ${known.join(', ')}`)
  for (const [name, value] of fields) {
    if (!known.includes(name))
      refuse(value, where, `has the field ${shown(name)}, which is not known; known are ${known.join(', ')}`)
  }
  return fields
}

function names<T>(
  fields: ReadonlyMap<string, Located>,
  field: string,
  where: string,
  rule: Located,
  read: (text: string, fault: (why: string) => never) => T,
): readonly T[] {
  const node = fields.get(field)
  if (!node) return refuse(rule, `${where}.${field}`, 'is missing')
  const list = node.items ?? [node]
  if (list.length === 0 || list.length > POLICY_LIMITS.names) {
    refuse(node, `${where}.${field}`, `must be a text, or a list of 1 to ${POLICY_LIMITS.names}`)
  }
  return list.map((item, index) => {
    const name = node.items ? `${where}.${field}[${index}]` : `${where}.${field}`
    const { scalar } = item
    if (typeof scalar !== 'string') return refuse(item, name, 'must be a text; write it in quotes')
    return read(scalar, (why) => refuse(item, name, `${shown(scalar)} ${why}`))
  })
}

function constraintsOf(node: Located, where: string): Constraints {
  return readConstraints(plain(node), (path, why) => {
    let at = node
    for (const step of path) at = (typeof step === 'string' ? at.fields?.get(step) : at.items?.[step]) ?? at
    const name = path.map((step) => (typeof step === 'number' ? `[${step}]` : `[${shown(step)}]`)).join('')
    return refuse(at, `${where}${name}`, why)
  })
}

function limitOf(
  fields: ReadonlyMap<string, Located>,
  field: string,
  where: string,
  fits: (value: number) => boolean,
): number | undefined {
  const node = fields.get(field)
  if (!node) return undefined
  const { scalar } = node
  if (typeof scalar !== 'number' || !fits(scalar)) {
    return refuse(
      node,
      `${where}.${field}`,
      field === 'max_qps' ? 'must be a positive number' : 'must be a positive whole number',
    )
  }
  return scalar
}

function plain({ scalar, fields, items }: Located): unknown {
  if (items) return items.map(plain)
  if (!fields) return scalar
  // A name like __proto__ must not become something else than a name.
  return Object.fromEntries([...fields].map(([name, field]) => [name, plain(field)]))
}

function refuse(node: Located, field: string, why: string): never {
  throw new PolicyFault(why, { line: node.line, field })
}

/** Text of a file, fit for one line of a log. */
function shown(text: string): string {
  const cut = text.length > 80 ? `${text.slice(0, 80)}…` : text
  return JSON.stringify(cut).replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu,
    (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`,
  )
}
