import { ID_PATTERNS, MAX_AGENT_ID } from '../names.ts'
import { deepFreeze } from '../payload/value.ts'

// Pieces that the published schemas share.

const DIALECT = 'https://json-schema.org/draft/2020-12/schema'

/** Where the published schemas of protocol major 1 are named. */
const schemaId = (name: string) => `https://hermes-peer.dev/schema/1/${name}.json`

const SEGMENT = '[a-z0-9][a-z0-9._-]{0,63}'

export const name = { type: 'string', pattern: `^${SEGMENT}$` } as const
export const agentId = {
  type: 'string',
  maxLength: MAX_AGENT_ID,
  pattern: `^${SEGMENT}(/${SEGMENT}){0,3}$`,
} as const
export const capabilityName = { type: 'string', pattern: `^${SEGMENT}(@([2-9]|[1-9][0-9]{1,5}))?$` } as const
export const id = (kind: keyof typeof ID_PATTERNS) => ({ type: 'string', pattern: ID_PATTERNS[kind].source }) as const
export const hex = (digits: number) => ({ type: 'string', pattern: `^[0-9a-f]{${digits}}$` }) as const
export const fingerprint = { type: 'string', pattern: '^sha256:[0-9a-f]{64}$' } as const
export const base64url = { type: 'string', pattern: '^[A-Za-z0-9_-]*$' } as const

export const integer = (minimum: number, maximum: number = Number.MAX_SAFE_INTEGER) =>
  ({ type: 'integer', minimum, maximum }) as const

export const text = (maxLength: number, minLength = 0) => ({ type: 'string', minLength, maxLength }) as const

/** A closed object: what is not named is refused. */
export const closed = <P extends Record<string, unknown>, R extends keyof P & string>(
  properties: P,
  required: readonly R[],
) => ({ type: 'object', properties, required, additionalProperties: false }) as const

/** A schema published by its own name. */
export const published = <S extends object>(fileName: string, title: string, schema: S) =>
  deepFreeze({ $schema: DIALECT, $id: schemaId(fileName), title, ...schema })
