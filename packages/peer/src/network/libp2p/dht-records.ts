import { HermesError } from '@hermes-peer/protocol'
import type { KadDHT } from '@libp2p/kad-dht'
import type { RecordJudge } from '../records.ts'
import { nobodyAnswered } from './providers.ts'
import { deadline, untilAborted } from './signals.ts'

/** Signed records in the DHT. */
export interface DhtRecords {
  /** As `Network.putRecord`. */
  put(key: string, value: Uint8Array, signal: AbortSignal): Promise<number>
  /** As `Network.getRecord`. */
  get(key: string, signal: AbortSignal): Promise<Uint8Array | undefined>
}

export function createDhtRecords(options: {
  dht: Pick<KadDHT, 'put' | 'get'>
  ownPeerId: string
  judge: RecordJudge
  /** Ends when the network stops. */
  life: AbortSignal
}): DhtRecords {
  const { dht, ownPeerId, judge, life } = options

  /** Reads events to their end, or to the signal's; what fails in between is told by what came of it. */
  const read = async (
    events: AsyncIterable<Event>,
    signal: AbortSignal,
    take: (event: Event) => void,
  ): Promise<unknown> => {
    const reader = events[Symbol.asyncIterator]()
    try {
      for (;;) {
        const next = await untilAborted(reader.next(), signal)
        if (next.done === true) return undefined
        take(next.value)
      }
    } catch (error) {
      return error
    } finally {
      void Promise.resolve(reader.return?.()).catch(() => undefined)
    }
  }
  const over = (answered: boolean, fault: unknown): void => {
    if (life.aborted) throw new HermesError('STOPPED')
    if (!answered) throw nobodyAnswered(fault)
  }

  return {
    async put(key, value, signal) {
      judge.judge(key, value)
      const limit = deadline({ parents: [signal, life] })
      let taken = 0
      const events = dht.put(Buffer.from(key), value, { signal: limit.signal }) as AsyncIterable<Event>
      const fault = await read(events, limit.signal, (event) => {
        if (event.name === 'PEER_RESPONSE' && event.messageName === 'PUT_VALUE') taken++
      }).finally(limit.clear)
      over(taken > 0, fault)
      return taken
    },

    async get(key, signal) {
      judge.demandKind(key)
      const limit = deadline({ parents: [signal, life] })
      let answered = false
      let best: { serial: number; value: Uint8Array } | undefined
      const consider = (value: Uint8Array): void => {
        try {
          const { serial } = judge.judge(key, value)
          if (!best || serial > best.serial) best = { serial, value }
        } catch {
          // Not authentic, or older than what is known.
        }
      }
      const events = dht.get(Buffer.from(key), { signal: limit.signal }) as AsyncIterable<Event>
      const fault = await read(events, limit.signal, (event) => {
        if (event.name === 'PEER_RESPONSE' && event.from?.toString() !== ownPeerId) answered = true
        if (event.name === 'PEER_RESPONSE' && event.record) consider(event.record.value)
        if (event.name === 'VALUE' && event.value) consider(event.value)
      }).finally(limit.clear)
      over(answered || best !== undefined, fault)
      return best?.value.slice()
    },
  }
}

/** The parts of kad-dht's events that are looked at. */
interface Event {
  readonly name: string
  readonly messageName?: string
  readonly from?: { toString(): string }
  readonly record?: { readonly value: Uint8Array }
  readonly value?: Uint8Array
}
