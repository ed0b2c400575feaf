import { isHermesError } from '../errors/hermes-error.ts'
import { isForbiddenKey, MAX_DEPTH, MAX_INTEGER, MAX_KEYS, MAX_PAYLOAD_BYTES, MAX_VALUES } from './limits.ts'
import { invalidPayload, payloadTooLarge } from './refusal.ts'

/** A JSON number from here on is written with an exponent, so that it is no longer spelled as an integer. */
const FIRST_EXPONENT = 1e21

interface Walk {
  readonly root: unknown
  readonly limit: number
  readonly checkStrings: boolean
  /** A lower bound of the encoded size, so that a small graph that unfolds into a huge text is stopped early. */
  size: number
  keys: number
  values: number
  /** The way to the value in hand; only as much of it as the depth says is current. */
  readonly trail: (string | number)[]
}

interface InspectOptions {
  /** Bytes that the encoded value may have, default 64 MiB. */
  limit?: number
  /** Whether to look for lone surrogates, default false. */
  checkStrings?: boolean
}

/**
 * Checks that a value is plain data that every form of payload can carry. Undefined as a whole passes. Throws
 * `INVALID_PAYLOAD` with the place of what does not, `PAYLOAD_TOO_LARGE` for what cannot fit the limit.
 */
export function inspect(value: unknown, options: InspectOptions = {}): void {
  const { limit = MAX_PAYLOAD_BYTES, checkStrings = false } = options
  const walk: Walk = { root: value, limit, checkStrings, size: 0, keys: 0, values: 0, trail: [] }
  try {
    if (value !== undefined) visit(value, 0, walk)
  } catch (error) {
    if (isHermesError(error)) throw error
    // A getter or a proxy threw.
    throw invalidPayload(walk.trail, 'this value cannot be read', error)
  }
}

function visit(value: unknown, depth: number, walk: Walk): void {
  if (++walk.size > walk.limit) throw payloadTooLarge(walk.limit)
  if (++walk.values > MAX_VALUES) refuse(walk, depth, `more than ${MAX_VALUES} values`)
  switch (typeof value) {
    case 'string':
      visitString(value, depth, walk)
      break
    case 'number':
      if (!Number.isSafeInteger(value)) visitNumber(value, depth, walk)
      break
    case 'boolean':
      break
    case 'object':
      if (value === null) break
      if (depth === MAX_DEPTH) refuse(walk, depth, nestingIssue(walk.root))
      if (Array.isArray(value)) visitList(value, depth, walk)
      else visitObject(value, depth, walk)
      break
    default:
      refuse(walk, depth, `${named(value)} cannot be sent; ${REMEDIES[typeof value] ?? 'send plain data'}`)
  }
}

const REMEDIES: Readonly<Record<string, string>> = {
  undefined: 'send null',
  bigint: 'send it as a string',
}

function visitNumber(value: number, depth: number, walk: Walk): void {
  if (!Number.isFinite(value)) refuse(walk, depth, `${value} is not a JSON number; send null or a string`)
  if (Number.isInteger(value) && Math.abs(value) < FIRST_EXPONENT) {
    refuse(walk, depth, `an integer beyond ±${MAX_INTEGER} is not exact; send it as a string`)
  }
}

function visitString(value: string, depth: number, walk: Walk): void {
  walk.size += value.length
  if (walk.size > walk.limit) throw payloadTooLarge(walk.limit)
  if (walk.checkStrings && !isWellFormed(value)) {
    refuse(walk, depth, 'a string has half of a surrogate pair; cut text at whole characters')
  }
}

function visitList(list: readonly unknown[], depth: number, walk: Walk): void {
  for (let i = 0; i < list.length; i++) {
    walk.trail[depth] = i
    visit(list[i], depth + 1, walk)
  }
}

function visitObject(object: object, depth: number, walk: Walk): void {
  if (!isPlain(object)) refuse(walk, depth, `${named(object)} is not plain data; ${remedyFor(object)}`)
  for (const key of Object.keys(object)) {
    const value = (object as Record<string, unknown>)[key]
    if (value === undefined) continue
    walk.trail[depth] = key
    if (isForbiddenKey(key)) refuse(walk, depth + 1, 'this key is not allowed in data')
    if (++walk.keys > MAX_KEYS) refuse(walk, depth + 1, `more than ${MAX_KEYS} keys`)
    visitString(key, depth + 1, walk)
    visit(value, depth + 1, walk)
  }
}

function refuse(walk: Walk, depth: number, issue: string): never {
  throw invalidPayload(walk.trail.slice(0, depth), issue)
}

/** Also plain objects of another realm, whose `Object.prototype` is not ours. */
function isPlain(object: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(object)
  if (prototype === Object.prototype || prototype === null) return true
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype as object, 'isPrototypeOf')
}

function named(value: unknown): string {
  if (typeof value !== 'object' || value === null)
    return typeof value === 'undefined' ? 'undefined' : `a ${typeof value}`
  const maker = (value as { constructor?: unknown }).constructor
  const name: unknown = typeof maker === 'function' ? maker.name : ''
  return typeof name === 'string' && name !== '' ? `an instance of ${name.slice(0, 64)}` : 'an instance of a class'
}

function remedyFor(object: object): string {
  if (object instanceof Date) return 'send toISOString()'
  if (object instanceof Map) return 'send Object.fromEntries(…)'
  if (object instanceof Set) return 'send an array'
  if (object instanceof Error) return 'throw it, or send its message'
  if (ArrayBuffer.isView(object)) return 'send base64'
  if (typeof (object as { then?: unknown }).then === 'function') return 'await it first'
  return 'send an object of its fields'
}

function nestingIssue(root: unknown): string {
  return isCircular(root) ? 'the data contains itself' : `more than ${MAX_DEPTH} levels of nesting`
}

/** Depth first with an explicit stack, each object once: the data may be deeper than the call stack. */
function isCircular(root: unknown): boolean {
  const open = new Set<unknown>()
  const done = new Set<unknown>()
  const stack: { node: object; rest: unknown[] }[] = []
  const enter = (value: unknown): boolean => {
    if (typeof value !== 'object' || value === null || done.has(value)) return false
    if (open.has(value)) return true
    open.add(value)
    stack.push({ node: value, rest: Object.values(value) })
    return false
  }
  enter(root)
  for (let top = stack.at(-1); top; top = stack.at(-1)) {
    if (top.rest.length > 0) {
      if (enter(top.rest.pop())) return true
    } else {
      open.delete(top.node)
      done.add(top.node)
      stack.pop()
    }
  }
  return false
}

/** `String.prototype.isWellFormed` is in every supported engine, but not yet in the library types of our target. */
export function isWellFormed(text: string): boolean {
  return (text as unknown as { isWellFormed(): boolean }).isWellFormed()
}
