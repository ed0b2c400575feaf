import { HermesError } from '@hermes-peer/protocol'

/** What a record of the DHT says of itself, once it has been checked. */
export interface CheckedRecord {
  /** Rises with each new version of what the key names. */
  readonly serial: number
  /** Wall clock, ms. */
  readonly expiresAt: number
}

/** One kind of record: those whose key begins with `/<kind>/`. */
export interface RecordKind {
  /** Largest value, bytes. */
  readonly mostBytes: number
  /** Throws a `HermesError` unless the value is authentic, and the one that `id`, the rest of the key, names. */
  check(id: string, value: Uint8Array): CheckedRecord
}

/** By the first part of the key, like `hermes-manifest`. */
export type RecordKinds = Readonly<Record<string, RecordKind>>

export interface RecordJudgeOptions {
  readonly kinds: RecordKinds
  /** Wall clock, ms. */
  now(): number
  /** Keys remembered; while all are in use, records of further keys are refused. Default 4,096. */
  most?: number
  /** That key is remembered no more, as its record has expired. */
  forget?(key: string): void
}

/** Judges records with a memory: an older one of a key never takes the place of a newer one. */
export interface RecordJudge {
  /**
   * Throws `INVALID_OPTION` for a key of no known kind, `LIMIT_EXCEEDED`, `EXPIRED` for one that has expired or is older than one that was
   * seen, `QUEUE_FULL`, or what the check of its kind throws.
   */
  judge(key: string, value: Uint8Array): CheckedRecord
  /** Throws `INVALID_OPTION` for a key of no known kind. */
  demandKind(key: string): void
}

const MOST_KEYS = 4096
const MOST_KEY = 256

export function createRecordJudge({ kinds, now, most = MOST_KEYS, forget }: RecordJudgeOptions): RecordJudge {
  /** The newest seen of each key; never evicted before it expires, as the older one would be new again then. */
  const newest = new Map<string, CheckedRecord & { readonly value: Uint8Array }>()

  const makeRoom = (): void => {
    if (newest.size < most) return
    for (const [key, { expiresAt }] of newest) {
      if (expiresAt > now()) continue
      newest.delete(key)
      forget?.(key)
    }
    if (newest.size >= most)
      throw new HermesError('QUEUE_FULL', { message: `${most} records of others are kept already` })
  }

  return {
    demandKind(key) {
      kindOf(key, kinds)
    },
    judge(key, value) {
      const { kind, id } = kindOf(key, kinds)
      if (value.length > kind.mostBytes) {
        throw new HermesError('LIMIT_EXCEEDED', {
          message: `record ${key} has ${value.length} bytes, ${kind.mostBytes} at most`,
          details: { size: value.length, limit: kind.mostBytes },
        })
      }
      const known = newest.get(key)
      // The dear check is made once for each version.
      if (known && same(known.value, value)) {
        if (known.expiresAt > now()) return known
        throw new HermesError('EXPIRED', { message: `record ${key} has expired` })
      }
      const checked = kind.check(id, value)
      if (checked.expiresAt <= now()) throw new HermesError('EXPIRED', { message: `record ${key} has expired` })
      if (known && checked.serial <= known.serial) {
        throw new HermesError('EXPIRED', {
          message: `record ${key} has serial ${checked.serial}, and ${known.serial} is known`,
          details: { serial: checked.serial, known: known.serial },
        })
      }
      if (!known) makeRoom()
      newest.set(key, { ...checked, value: value.slice() })
      return checked
    },
  }
}

function kindOf(key: string, kinds: RecordKinds): { kind: RecordKind; id: string } {
  const [, name, id] = /^\/([a-z0-9-]{1,64})\/(.+)$/.exec(key.length <= MOST_KEY ? key : '') ?? []
  const kind = name !== undefined && Object.hasOwn(kinds, name) ? kinds[name] : undefined
  if (kind && id !== undefined) return { kind, id }
  throw new HermesError('INVALID_OPTION', {
    message: `key: ${JSON.stringify(key.slice(0, 80))} is not /<kind>/<id> with a kind of ${Object.keys(kinds).join(', ') || 'none'}`,
    details: { field: 'key' },
  })
}

const same = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && a.every((byte, at) => byte === b[at])
