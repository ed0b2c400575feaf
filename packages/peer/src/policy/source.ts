import { readFileSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import { HermesError } from '@hermes-peer/protocol'
import type { Clock, Timer } from '../clock.ts'
import type { Telemetry } from '../telemetry/events.ts'
import { POLICY_LIMITS, type PolicyDocument } from './document.ts'
import { type LocateText, loadYaml } from './located.ts'
import { type Policy, policyOfObject, readPolicy } from './read.ts'

/** Where the rules come from. */
export interface PolicySource {
  current(): Policy
  /** Looks at the file from now on. */
  watch(): void
  stop(): void
}

export interface PolicySourceOptions {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly lookMs: number
}

/**
 * Reads a policy: the text or bytes of a file (YAML or JSON), whose lines are told under `name`, or the rules themselves. Rejects with
 * `INVALID_POLICY` that names line and field.
 */
export async function parsePolicy(given: string | Uint8Array | PolicyDocument, name = 'policy.yaml'): Promise<Policy> {
  if (typeof given !== 'string' && !(given instanceof Uint8Array)) return policyOfObject(given)
  return policyOfText(given, name, await loadYaml())
}

/** Rules that stay as they are. */
export function fixedPolicy(policy: Policy, { telemetry }: Pick<PolicySourceOptions, 'telemetry'>): PolicySource {
  return {
    current: () => policy,
    watch: () => tellLoaded(telemetry, policy, false),
    stop: () => undefined,
  }
}

/**
 * Rules of a file, which may be replaced or written to at any time. Editors and deployments write in several steps: a changed file
 * is read once two looks at it have found the same, so that half of a file is not taken for all of it. What cannot be used is told
 * once, and the rules before it go on. Rejects with `INVALID_POLICY` when the first reading fails.
 */
export async function filePolicy(
  path: string,
  { clock, telemetry, lookMs }: PolicySourceOptions,
): Promise<PolicySource> {
  const locate = await loadYaml()
  let taken = stampOf(path)
  let policy = policyOfFile(path, locate)
  let seen = taken
  let timer: Timer | undefined

  const look = (): void => {
    timer = clock.after(lookMs, look)
    const now = stampOf(path)
    const atRest = now === seen
    seen = now
    if (now === taken || !atRest) return
    taken = now
    try {
      const next = policyOfFile(path, locate)
      // It was written to while it was read: the next look decides.
      if (stampOf(path) !== now) {
        taken = ''
        return
      }
      policy = next
      tellLoaded(telemetry, policy, true)
    } catch (error) {
      telemetry.emit('policy.failed', { source: policy.source, reason: HermesError.from(error).message })
    }
  }

  return {
    current: () => policy,
    watch() {
      tellLoaded(telemetry, policy, false)
      timer = clock.after(lookMs, look)
    },
    stop: () => clock.clear(timer),
  }
}

function tellLoaded(telemetry: Telemetry, { source, mode, serve, call }: Policy, again: boolean): void {
  telemetry.emit('policy.loaded', { source, mode, serve: serve.length, call: call?.length, again })
}

function policyOfFile(path: string, locate: LocateText): Policy {
  let bytes: Uint8Array
  try {
    const { size } = statSync(path)
    if (size > POLICY_LIMITS.bytes) refuse(path, `has ${size} bytes, the limit is ${POLICY_LIMITS.bytes}`)
    bytes = readFileSync(path)
  } catch (cause) {
    if (cause instanceof HermesError) throw cause
    throw new HermesError('INVALID_POLICY', {
      message: `policy: cannot read ${path}: ${(cause as NodeJS.ErrnoException).code ?? 'it is no file'}`,
      hint: 'Give the path of a file that this user can read.',
      details: { field: 'policy' },
      cause,
    })
  }
  return policyOfText(bytes, basename(path), locate)
}

function policyOfText(given: string | Uint8Array, name: string, locate: LocateText): Policy {
  const text = typeof given === 'string' ? given : textOf(given, name)
  // With or without a mark at its beginning it is the same file.
  const marked = text.startsWith('\uFEFF') ? text.slice(1) : text
  if (marked.trim() === '') refuse(name, 'is empty: nobody could use anything', 'Write serve: [] if that is meant.')
  return readPolicy(name, () => locate(marked))
}

function textOf(bytes: Uint8Array, name: string): string {
  const wide = (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff)
  try {
    if (wide) throw new Error('it is UTF-16')
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (cause) {
    return refuse(name, 'is not UTF-8', wide ? 'It is UTF-16: save it as UTF-8.' : 'Save it as UTF-8.', cause)
  }
}

function refuse(name: string, why: string, hint?: string, cause?: unknown): never {
  throw new HermesError('INVALID_POLICY', {
    message: `${name}: ${why}`,
    details: { field: 'policy' },
    ...(hint === undefined ? {} : { hint }),
    ...(cause === undefined ? {} : { cause }),
  })
}

/** Another text whenever the file may have changed, was put in the place of another one, or can no longer be looked at. */
function stampOf(path: string): string {
  try {
    const { mtimeNs, ctimeNs, size, ino } = statSync(path, { bigint: true })
    return `${mtimeNs} ${ctimeNs} ${size} ${ino}`
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'gone'
  }
}
