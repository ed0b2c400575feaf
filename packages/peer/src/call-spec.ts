import {
  type Capability,
  checkName,
  type Effects,
  encodePayload,
  fromBase64url,
  HermesError,
  ID_PATTERNS,
  MAX_HOPS,
  MAX_PATH,
  newCorrelationId,
  newMessageId,
  newTraceId,
  type Priority,
  sha256Hex,
} from '@hermes-peer/protocol'
import type { CallOptions } from './api.ts'
import type { CallSpec } from './calls/call.ts'
import type { Served } from './calls/context.ts'
import { withRefs } from './calls/pull.ts'
import type { PieceReader } from './calls/stream-caller.ts'
import { checkIntent, checkSla, checkTimes, checkWhere } from './checks.ts'
import type { Clock } from './clock.ts'
import type { Tunables } from './defaults.ts'
import type { Random } from './random.ts'

export interface SpecSource {
  readonly capability: string
  readonly effects: Effects | undefined
  readonly input: unknown
  /** JSON Schema of our own contract, when there is one. */
  readonly inputSchema: unknown
  readonly options: CallOptions
  readonly sessionId?: string | undefined
  /** That agent may pull the context from now on. */
  readonly grant?: (ref: string, agentId: string) => void
  /** The call being served, when this one is made inside a handler. */
  readonly served: Served | undefined
  /** Takes the pieces of a streaming call. */
  readonly reader?: PieceReader
}

/** What of a call its contract says, with the input as the user gave it: the sender checks and sends the original value. */
export function workOf(
  contract: Capability,
  input: unknown,
): Pick<SpecSource, 'capability' | 'effects' | 'input' | 'inputSchema'> {
  return {
    capability: contract.name,
    effects: contract.effects,
    input: input === undefined ? null : input,
    inputSchema: contract.jsonSchemas.input,
  }
}

const KNOWN: ReadonlySet<string> = new Set<keyof CallOptions>([
  'agent',
  'where',
  'intent',
  'sla',
  'timeoutMs',
  'priority',
  'signal',
  'correlationId',
  'ordered',
  'maxHops',
  'context',
  'refs',
  'delegation',
])

/** Reads the options of one call and what it inherits. Throws `INVALID_OPTION`, `INVALID_NAME`, `DEPTH_EXCEEDED`. */
export function callSpec(
  source: SpecSource,
  { clock, random, tunables }: { clock: Clock; random: Random; tunables: Tunables },
): CallSpec {
  const { options, served, capability, effects, input, inputSchema } = source
  checkCallOptions(options)
  const lent = lentWith(options)
  const context = withRefs(lent ? { ...options.context, delegation: lent.text } : options.context, options.refs)
  const { refs = [] } = options
  const bytes = (length: number) => random.bytes(length)
  const path = served?.path ?? []
  if (path.length > MAX_PATH) {
    throw new HermesError('DEPTH_EXCEEDED', {
      message: `${path.length} calls already wait for one another: ${path.join(' → ')}`,
      details: { path },
    })
  }
  const standard = source.reader ? tunables.streamTimeoutMs : tunables.callTimeoutMs
  const own = clock.monotonic() + (options.timeoutMs ?? standard)
  const deadline = served ? Math.min(own, served.deadline) : own
  return {
    capability,
    agent: options.agent,
    where: options.where,
    intent: options.intent,
    sla: options.sla,
    effects,
    input: { value: input, schema: inputSchema },
    // Once for all attempts, and before anything is counted: what cannot be sent is refused here.
    payload: encodePayload('application/json', (context === undefined ? { input } : { input, context }) as never),
    messageId: newMessageId(bytes),
    correlationId: options.correlationId ?? (served?.correlationId || newCorrelationId(bytes)),
    traceId: served?.traceId ?? newTraceId(bytes),
    priority: options.priority ?? served?.priority ?? (3 as Priority),
    path,
    ordered: options.ordered ?? true,
    maxHops: options.maxHops,
    sessionId: source.sessionId,
    ...(lent ? { delegation: lent.hash } : {}),
    // What stays with us is for whom the request reaches, and for nobody else.
    reached:
      refs.length === 0
        ? undefined
        : (other) => {
            for (const { ref } of refs) source.grant?.(ref, other)
          },
    deadline,
    timeoutMs: Math.round(deadline - clock.monotonic()),
    ...(source.reader ? { reader: source.reader } : {}),
  }
}

/** The delegation as it travels, and what names it in the header. Throws `INVALID_OPTION`. */
function lentWith({ delegation, context }: CallOptions): { text: string; hash: string } | undefined {
  if (delegation === undefined) return undefined
  const refuse = (field: string, why: string): never => {
    throw new HermesError('INVALID_OPTION', { message: `${field} ${why}`, details: { field } })
  }
  const text = (delegation as { document?: unknown } | null)?.document
  const bytes = typeof text === 'string' ? fromBase64url(text) : undefined
  if (!bytes) return refuse('delegation', 'must be what delegate() gave, or ctx.delegation')
  if (context && Object.hasOwn(context, 'delegation')) refuse('context.delegation', 'is where the delegation travels')
  return { text: text as string, hash: sha256Hex(bytes) }
}

/** Throws `INVALID_OPTION` or `INVALID_NAME` for options that no call takes. */
export function checkCallOptions(options: CallOptions): void {
  const refuse = (field: string, why: string): never => {
    throw new HermesError('INVALID_OPTION', { message: `${field} ${why}`, details: { field } })
  }
  for (const key of Object.keys(options))
    if (!KNOWN.has(key)) refuse(key, `is not an option of a call; known are ${[...KNOWN].join(', ')}`)
  const { agent, where, intent, sla, priority, correlationId, context, ordered, maxHops } = options
  if (agent !== undefined) checkName('agent_id', agent, 'agent')
  checkTimes(options)
  checkWhere(where)
  checkIntent(intent)
  checkSla(sla)
  if (ordered !== undefined && typeof ordered !== 'boolean') refuse('ordered', 'must be true or false')
  if (maxHops !== undefined && !(Number.isInteger(maxHops) && maxHops >= 0 && maxHops <= MAX_HOPS)) {
    refuse('maxHops', `must be a whole number from 0 to ${MAX_HOPS}`)
  }
  if (priority !== undefined && ![1, 2, 3, 4, 5].includes(priority)) refuse('priority', 'must be 1, 2, 3, 4 or 5')
  if (correlationId !== undefined && !ID_PATTERNS.correlation_id.test(correlationId)) {
    refuse('correlationId', 'must be corr_ and 16 letters or digits, as an earlier answer gave it')
  }
  if (context !== undefined && (typeof context !== 'object' || context === null || Array.isArray(context))) {
    refuse('context', 'must be an object')
  }
}
