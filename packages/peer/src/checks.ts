import { type Capability, checkName, HermesError, isCapability } from '@hermes-peer/protocol'
import type { SessionTarget } from './api.ts'
import type { Query, Sla } from './routing/query.ts'

/** Longest time-out that may be asked for: one day, ms. */
const LONGEST_MS = 86_400_000

function refuse(field: string, why: string): never {
  throw new HermesError('INVALID_OPTION', { message: `${field} ${why}`, details: { field } })
}

/** Throws `INVALID_CONTRACT` for anything that `capability()` did not make. */
export function checkContract(contract: unknown, where: 'provide' | 'call' | 'submit' | 'task'): void {
  if (isCapability(contract)) return
  throw new HermesError('INVALID_CONTRACT', {
    message: `${where}: contract must be what capability() returns`,
    ...(where === 'call' ? { hint: 'To call by a name alone, use callDynamic().' } : {}),
    details: { field: 'contract' },
  })
}

/** Throws `INVALID_CONTRACT` for a contract whose output comes in pieces. */
export function checkPlain(contract: Capability): void {
  if (contract.schemas.yields === undefined) return
  throw new HermesError('INVALID_CONTRACT', {
    message: `call: ${contract.name} has yields, so its output comes in pieces`,
    hint: 'Use stream().',
    details: { field: 'contract' },
  })
}

const KINDS: Readonly<Record<string, string>> = {
  AsyncGeneratorFunction: 'an async generator',
  GeneratorFunction: 'a generator that is not async',
}

/** Whether the handler is what its contract needs: an async generator where it has `yields`, and only there. Throws `INVALID_CONTRACT`. */
export function checkHandler(contract: Capability, handler: unknown): void {
  const refuse = (why: string, hint?: string): never => {
    throw new HermesError('INVALID_CONTRACT', {
      message: `provide: the handler of ${contract.name} ${why}`,
      ...(hint === undefined ? {} : { hint }),
      details: { field: 'handler' },
    })
  }
  if (typeof handler !== 'function') refuse('must be a function')
  const kind = KINDS[Object.prototype.toString.call(handler).slice(8, -1)]
  const streams = contract.schemas.yields !== undefined
  if (streams && kind !== KINDS.AsyncGeneratorFunction) {
    refuse(
      'must be an async generator: its contract has yields',
      'Write async function*, and hand on to another one by yield*.',
    )
  }
  if (!streams && kind !== undefined) {
    refuse(`is ${kind}, but its contract has no yields`, 'Add yields to the contract, or return the whole output.')
  }
}

/** Throws `INVALID_OPTION` that names `timeoutMs` or `signal`. */
export function checkTimes({ timeoutMs, signal }: { timeoutMs?: unknown; signal?: unknown }): void {
  if (timeoutMs !== undefined && !(typeof timeoutMs === 'number' && timeoutMs > 0 && timeoutMs <= LONGEST_MS)) {
    refuse('timeoutMs', 'must be a number of milliseconds up to 24 hours')
  }
  if (signal === undefined) return
  const { aborted, addEventListener } = (signal ?? {}) as Partial<AbortSignal>
  if (typeof aborted !== 'boolean' || typeof addEventListener !== 'function') refuse('signal', 'must be an AbortSignal')
}

/** How long a stop may wait for what runs. */
export function checkDrain(drainMs: unknown): void {
  if (!(typeof drainMs === 'number' && drainMs >= 0 && drainMs <= LONGEST_MS))
    refuse('drainMs', 'must be a number of milliseconds from 0 to 24 hours')
}

/** Whom a session is with. Throws `INVALID_OPTION`, `INVALID_NAME` or `INVALID_CONTRACT`. */
export function checkTarget(target: SessionTarget): {
  agent?: string
  contract?: Capability
  where?: Readonly<Record<string, string>> | undefined
} {
  if (typeof target === 'string') return { agent: checkName('agent_id', target, 'target') }
  if (typeof target !== 'object' || target === null) refuse('target', 'must be an agent id, or an object with contract')
  const { contract, where, ...rest } = target
  const other = Object.keys(rest)[0]
  if (other !== undefined) refuse(`target.${other}`, 'is not a field of a target; known are contract and where')
  checkContract(contract, 'call')
  checkWhere(where)
  return { contract, where }
}

/** Options of offered context; throws `INVALID_OPTION` or `INVALID_NAME`. */
export function checkOffer(agents: unknown, ttlMs: unknown, mostMs: number): void {
  if (!(typeof ttlMs === 'number' && ttlMs > 0 && ttlMs <= mostMs))
    refuse('ttlMs', `must be a number of milliseconds up to ${mostMs}`)
  if (!Array.isArray(agents)) refuse('agents', 'must be a list of agent ids')
  for (const agent of agents as unknown[]) checkName('agent_id', agent as string, 'agents')
}

/** Options of a session; throws `INVALID_OPTION` that names the field. */
export function checkSession({ idleMs, leaseMs }: { idleMs?: unknown; leaseMs?: unknown }, mostIdleMs: number): void {
  const time = (value: unknown, most: number) => typeof value === 'number' && value > 0 && value <= most
  if (idleMs !== undefined && !time(idleMs, mostIdleMs))
    refuse('idleMs', `must be a number of milliseconds up to ${mostIdleMs}: ask for leaseMs to stay open for longer`)
  if (leaseMs !== undefined && !(Number.isSafeInteger(leaseMs) && time(leaseMs, LONGEST_MS)))
    refuse('leaseMs', 'must be a whole number of milliseconds up to 24 hours')
}

/** Files of a key that was made elsewhere. Throws `INVALID_OPTION` that names the field. */
export function checkInstanceFiles(files: unknown): void {
  if (files === undefined) return
  if (typeof files !== 'object' || files === null) refuse('files', 'must be an object with identity and certificate')
  for (const field of ['identity', 'certificate'] as const) {
    const path = (files as Record<string, unknown>)[field]
    if (typeof path !== 'string' || path === '') refuse(`files.${field}`, 'must be the path of a file')
  }
}

/** What is to be revoked: a key with a reason, or a document; each is judged when it is read. Throws `INVALID_OPTION`. */
export function checkRevoked(what: unknown): void {
  if (typeof what !== 'object' || what === null)
    refuse('what', 'must be {key, reason}, or what makeRevocation() returns')
}

export function checkListener(listener: unknown, field: string): void {
  if (typeof listener !== 'function') refuse(field, 'must be a function')
}

/** Labels that must match. */
export function checkWhere(where: unknown): void {
  if (where === undefined) return
  const sound =
    typeof where === 'object' &&
    where !== null &&
    !Array.isArray(where) &&
    Object.values(where).every((value) => typeof value === 'string')
  if (!sound) refuse('where', 'must map labels to texts')
}

/** Characters of an intent. */
const LONGEST_INTENT = 2048

/** What is wanted in plain words. */
export function checkIntent(intent: unknown, field = 'intent'): void {
  if (intent === undefined) return
  if (typeof intent !== 'string' || intent.trim() === '' || intent.length > LONGEST_INTENT)
    refuse(field, `must be a text of 1 to ${LONGEST_INTENT} characters that says what is wanted`)
}

const SLA_BOUNDS: Readonly<Record<keyof Sla, readonly [number, number]>> = {
  p50Ms: [Number.MIN_VALUE, LONGEST_MS],
  p99Ms: [Number.MIN_VALUE, LONGEST_MS],
  success: [0, 1],
  costLevel: [1, 5],
  load: [0, 100],
}

/** Hard conditions. */
export function checkSla(sla: unknown): void {
  if (sla === undefined) return
  if (typeof sla !== 'object' || sla === null || Array.isArray(sla)) refuse('sla', 'must be an object of conditions')
  for (const [name, value] of Object.entries(sla as object)) {
    if (!Object.hasOwn(SLA_BOUNDS, name))
      refuse(`sla.${name}`, `is not a condition; known are ${Object.keys(SLA_BOUNDS).join(', ')}`)
    const [least, most] = SLA_BOUNDS[name as keyof Sla]
    if (value === undefined) continue
    if (!(typeof value === 'number' && value >= least && value <= most))
      refuse(`sla.${name}`, `must be a number from ${least === Number.MIN_VALUE ? 'above 0' : least} to ${most}`)
  }
}

const QUERY_FIELDS: ReadonlySet<string> = new Set<keyof Query>(['capability', 'agent', 'where', 'intent', 'sla'])

/** Throws `INVALID_OPTION` or `INVALID_NAME` that names the field. */
export function checkQuery(query: Query): void {
  if (typeof query !== 'object' || query === null) refuse('query', 'must be an object with capability, agent or intent')
  for (const key of Object.keys(query)) {
    if (!QUERY_FIELDS.has(key))
      refuse(`query.${key}`, `is not a field of a query; known are ${[...QUERY_FIELDS].join(', ')}`)
  }
  const { capability, agent, where, intent, sla } = query
  if (capability === undefined && agent === undefined && intent === undefined)
    refuse('query', 'must name a capability or an agent, or have an intent')
  if (capability !== undefined) checkName('capability', capability)
  if (agent !== undefined) checkName('agent_id', agent, 'agent')
  checkWhere(where)
  checkIntent(intent)
  checkSla(sla)
}
