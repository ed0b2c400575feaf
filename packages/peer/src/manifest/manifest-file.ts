import { readFileSync } from 'node:fs'
import {
  type Capability,
  type CapabilityDraft,
  capabilityFrom,
  HermesError,
  isHermesError,
} from '@hermes-peer/protocol'
import { parseDocument } from 'yaml'

/** What a manifest file says: the options it sets, and a contract for each capability by its name. */
export interface ManifestFile {
  /** As they stand in the file: `createPeer` judges them. */
  readonly options: {
    readonly agentId: string
    readonly network?: string
    readonly description?: string
    readonly listen?: readonly string[]
    readonly announce?: readonly string[]
  }
  readonly capabilities: Readonly<Record<string, Capability>>
}

/** Field of the file → option of `createPeer`, which judges the value. */
const OPTIONS = {
  agent_id: 'agentId',
  network: 'network',
  description: 'description',
  listen: 'listen',
  announce: 'announce',
} as const
const FIELDS = [...Object.keys(OPTIONS), 'capabilities']

/** Larger ones are not written by hand; a signed manifest has 256 KiB at most. */
const MOST_BYTES = 1024 * 1024

/**
 * Reads a manifest written by hand, in YAML or JSON (UTF-8, with or without byte order mark):
 *
 * ```yaml
 * agent_id: log-insight
 * description: 日志分析
 * capabilities:
 *   - name: log_anomaly_detect
 *     description: Finds unusual templates in lines of a server log and counts them.
 *     effects: none
 *     input_schema: { type: object, properties: { lines: { type: array, items: { type: string } } } }
 *     output_schema: { type: array }
 *     constraints: { max_concurrency: 4, budget_ms: 60000, cost_level: 2, p99_ms: 800 }
 *     labels: { language: [zh, en] }
 *     negative_capabilities: [does not handle non-log text]
 * ```
 *
 * Fields of a capability are those of a signed manifest; only `name`, `description`, `input_schema` and `output_schema` are needed.
 * Identity, serial and expiry are added when it is signed. Throws `INVALID_MANIFEST_FILE` that names path, line and field.
 */
export function readManifest(path: string): ManifestFile {
  return parseManifest(textOf(path), path)
}

/** The same of a text; `source` names it in errors. */
export function parseManifest(text: string, source: string): ManifestFile {
  const document = parseDocument(text.replace(/^\uFEFF/, ''), { uniqueKeys: true, stringKeys: true })
  const lineAt = (path: readonly unknown[]): string => {
    const node = document.getIn(path, true) as { range?: readonly number[] } | undefined
    const offset = node?.range?.[0]
    return offset === undefined ? '' : `:${text.slice(0, offset).split('\n').length}`
  }
  const refuse = (path: readonly unknown[], why: string, cause?: unknown): never => {
    const field = path.join('.')
    throw new HermesError('INVALID_MANIFEST_FILE', {
      message: `${source}${lineAt(path)}: ${field === '' ? '' : `${field} `}${why}`,
      details: { field },
      ...(cause === undefined ? {} : { cause }),
    })
  }
  const [broken] = document.errors
  if (broken) throw notRead(`${source}: ${broken.message.split('\n')[0]}`, broken)
  // Aliases that multiply are stopped by the parser itself.
  const value = attempt(
    () => document.toJS({ maxAliasCount: 100 }) as unknown,
    (cause) => refuse([], `cannot be used: ${(cause as Error).message}`, cause),
  )
  if (!isRecord(value)) return refuse([], `must be an object of ${FIELDS.join(', ')}`)
  const unknown = Object.keys(value).find((field) => !FIELDS.includes(field))
  if (unknown !== undefined) refuse([unknown], `is not a field of a manifest file; it has ${FIELDS.join(', ')}`)
  if (value.agent_id === undefined) refuse([], 'needs an agent_id')
  const listed = value.capabilities ?? []
  if (!Array.isArray(listed)) return refuse(['capabilities'], 'must be a list')
  const capabilities: Record<string, Capability> = {}
  for (const [index, entry] of listed.entries()) {
    const contract = attempt(
      () => capabilityFrom(entry as CapabilityDraft),
      (cause) => {
        if (!isHermesError(cause)) throw cause
        const steps = String(cause.details.path ?? '').split('/')
        return refuse(['capabilities', index, ...steps.slice(1)], cause.message, cause)
      },
    )
    if (Object.hasOwn(capabilities, contract.name)) refuse(['capabilities', index, 'name'], `repeats ${contract.name}`)
    capabilities[contract.name] = contract
  }
  const set = Object.entries(OPTIONS).filter(([field]) => value[field] !== undefined)
  return {
    options: Object.fromEntries(set.map(([field, option]) => [option, value[field]])) as ManifestFile['options'],
    capabilities: Object.freeze(capabilities),
  }
}

function textOf(path: string): string {
  let bytes: Buffer
  try {
    bytes = readFileSync(path)
  } catch (cause) {
    throw notRead(`${path}: ${(cause as Error).message}`, cause)
  }
  if (bytes.length > MOST_BYTES) throw notRead(`${path}: has more than ${MOST_BYTES} bytes`)
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (cause) {
    throw notRead(`${path}: is not UTF-8`, cause)
  }
}

function notRead(message: string, cause?: unknown): HermesError {
  return new HermesError('INVALID_MANIFEST_FILE', { message, ...(cause === undefined ? {} : { cause }) })
}

function attempt<T>(make: () => T, failed: (cause: unknown) => never): T {
  try {
    return make()
  } catch (cause) {
    return failed(cause)
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
