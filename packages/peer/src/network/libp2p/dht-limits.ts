import type { KadDHT, KadDHTInit } from '@libp2p/kad-dht'
import { type Datastore, Key } from 'interface-datastore'
import { base32 } from 'multiformats/bases/base32'
import { createRecordJudge, type RecordJudge, type RecordKinds } from '../records.ts'
import { createDhtGuard, guardDht } from './dht-guard.ts'
import { createDhtStore } from './dht-store.ts'

/** What a node keeps for others, and within which bounds. */
export interface DhtLimits {
  readonly datastore: Datastore
  readonly judge: RecordJudge
  /** For kad-dht: what it takes as a record, and which of several it takes. */
  readonly init: Pick<KadDHTInit, 'validators' | 'selectors'>
  /** Whether connections of a peer are refused, as it did not stop to send too much. */
  denies(peerId: string): boolean
  /** Begins to judge what others send. */
  attach(dht: KadDHT, cutOff: (peerId: string) => void): void
}

export function createDhtLimits(ownPeerId: string, kinds: RecordKinds): DhtLimits {
  const datastore = createDhtStore(ownPeerId)
  let hangUp = (_: string): void => undefined
  const guard = createDhtGuard({ now: () => performance.now(), cutOff: (peerId) => hangUp(peerId) })
  const judge = createRecordJudge({
    kinds,
    now: () => Date.now(),
    forget: (key) => void Promise.resolve(datastore.delete(storedAt(key))).catch(() => undefined),
  })
  const validator = async (key: Uint8Array, value: Uint8Array): Promise<void> => {
    judge.judge(textOf(key), value)
  }
  /** Only the newest passes again once all have been judged. */
  const selector = (key: Uint8Array, values: Uint8Array[]): number => {
    const newest = values.findIndex((value) => {
      try {
        judge.judge(textOf(key), value)
        return true
      } catch {
        return false
      }
    })
    return Math.max(0, newest)
  }
  const all = Object.keys(kinds)
  return {
    datastore,
    judge,
    init: {
      // A kind without a validator is refused, and `pk` has one by default.
      validators: { ...Object.fromEntries(all.map((kind) => [kind, validator])), pk: refuseRecord },
      selectors: Object.fromEntries(all.map((kind) => [kind, selector])),
    },
    denies: (peerId) => guard.denies(peerId),
    attach(dht, cutOff) {
      hangUp = cutOff
      guardDht(dht, guard)
    },
  }
}

const textOf = (key: Uint8Array): string => Buffer.from(key).toString('utf8')

/** Where kad-dht keeps the record of a key. */
const storedAt = (key: string): Key => new Key(`/dht/record/${base32.encode(Buffer.from(key)).slice(1)}`, false)

function refuseRecord(): never {
  throw new Error('this DHT keeps no public keys')
}
