import {
  decodePayload,
  encodePayload,
  fromBase64url,
  HermesError,
  type Priority,
  toBase64url,
} from '@hermes-peer/protocol'
import type { JournalChange } from '../../journal/journal.ts'

/** What is sent to one agent again and again until it says that it has it: never signed before it is sent. */
export interface DurableDraft {
  readonly agentId: string
  /** Names it: at most one draft has it. */
  readonly messageId: string
  readonly type: 'submit' | 'event' | 'request'
  readonly capability: string
  readonly payload: Uint8Array
  readonly correlationId: string | undefined
  readonly traceId: string
  readonly priority: Priority
  readonly path: readonly string[]
  /** How often it may be handed on. Default 4. */
  readonly maxHops?: number | undefined
  /** Names the delegation in the payload's context. */
  readonly delegation?: string
  /** Budget that the other side is told, ms. */
  readonly timeoutMs: number
  /** Wall clock, ms: given up after it. */
  readonly expiresAt: number
}

/** What the keys of drafts begin with. */
export const DRAFT_PREFIX = 'draft#'
const JSON_TYPE = 'application/json'

export function stored(draft: DurableDraft): JournalChange {
  const value = encodePayload(JSON_TYPE, {
    ...draft,
    correlationId: draft.correlationId ?? null,
    payload: toBase64url(draft.payload),
  })
  return { table: 'outbox', key: keyOf(draft), value }
}

const keyOf = ({ messageId }: DurableDraft): string => `${DRAFT_PREFIX}${messageId}`
export const removal = (draft: DurableDraft): JournalChange => ({
  table: 'outbox',
  key: keyOf(draft),
  value: undefined,
})

/** Throws `STORAGE_FAILED` for what this version has not written. */
export function readDraft(key: string, value: Uint8Array): DurableDraft {
  try {
    const fields = decodePayload(JSON_TYPE, value) as unknown as DurableDraft & { payload: string }
    const payload = fromBase64url(fields.payload as unknown as string)
    if (!payload || `${DRAFT_PREFIX}${fields.messageId}` !== key) throw new Error('it is not what its key says')
    return { ...fields, correlationId: fields.correlationId ?? undefined, payload }
  } catch (cause) {
    throw new HermesError('STORAGE_FAILED', { message: `the journal's ${key} cannot be read`, cause })
  }
}
