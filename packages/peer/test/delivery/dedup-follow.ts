import fc from 'fast-check'
import type { Dedup, DedupOptions, Outcome, WorkKey, WorkRecord } from '../../src/delivery/dedup.ts'
import { DedupModel, type Limits } from './dedup-model.ts'

export type Make = (options: DedupOptions) => Dedup

/** Small, so that a short run passes every one of them: three senders cannot all fill their shares. */
const SMALL: Limits = { idsPerSender: 4, bytesPerSender: 100, idsPerNode: 9 }
export const KEY: WorkKey = { messageType: 'request', capability: 'work', payloadSha256: 'ab'.repeat(32) }
export const outcome = (bytes: number): Outcome => ({
  messageType: 'response',
  contentType: 'application/json',
  payload: new Uint8Array(bytes),
})

const KINDS = ['begin', 'start', 'finish', 'settle', 'withdraw', 'refuse', 'sweep'] as const

/** The way of a record, taken more often than what cuts it short. */
const MANY_TIMES = ['begin', 'start', 'finish', 'settle'] as const

interface Step {
  kind: (typeof KINDS)[number]
  sender: string
  id: number
  /** Which of the records that the step may be for. */
  among: number
  bytes: number
  ms: number
}

export const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    kind: fc.constantFrom<Step['kind']>(...MANY_TIMES, ...MANY_TIMES, ...MANY_TIMES, ...KINDS),
    sender: fc.constantFrom('a', 'a', 'b', 'b', 'c'),
    id: fc.nat(7),
    among: fc.nat(8),
    bytes: fc.nat(70),
    ms: fc.oneof(fc.nat(3000), fc.constant(10_000)),
  }),
  { minLength: 1, maxLength: 100, size: 'max' },
)

/** What the runs have reached so far. */
export const seen = {
  begun: 0,
  finished: 0,
  busy: 0,
  forgottenForIds: 0,
  forgottenForBytes: 0,
  expired: 0,
  promised: 0,
  notPromised: 0,
}

type Entry = DedupModel['entries'][number]

/** In which state a record may be started, finished, settled or taken back. */
const STATE: Record<string, WorkRecord['state']> = {
  start: 'waiting',
  finish: 'running',
  settle: 'done',
  withdraw: 'waiting',
}

/** Runs the steps on a memory and on the model, and compares all that both hold after each. */
export function follow(make: Make, list: readonly Step[]): void {
  let now = 1000
  const dedup = make({ now: () => now, ...SMALL })
  const model = new DedupModel(SMALL)
  for (const { kind, sender, id: number, among, bytes, ms } of list) {
    const id = `msg_${number}`
    const before = model.entries.length
    if (kind === 'begin') {
      if (model.find(sender, id)) continue
      const begun = dedup.begin(sender, id, KEY, now + 5 * ms, 'leaf')
      if (model.begin(sender, id, now + 5 * ms) !== (begun !== undefined))
        throw new Error(`${sender} ${id} begun by one only`)
      seen[begun ? 'begun' : 'busy']++
      if (begun && model.entries.length <= before) seen.forgottenForIds++
    } else if (kind === 'refuse') {
      const promised = dedup.refuse(sender, id, now + ms)
      if (promised !== model.refuse(sender, id, now + ms)) throw new Error(`${sender} ${id}: promised by one only`)
      seen[promised ? 'promised' : 'notPromised']++
    } else if (kind === 'sweep') {
      now += ms
      dedup.sweep()
      model.sweep(now)
      seen.expired += before - model.entries.length
    } else {
      const fit = model.entries.filter((entry) => entry.sender === sender && entry.state === STATE[kind])
      const entry = fit[among % Math.max(fit.length, 1)]
      if (entry) act(kind, dedup, model, entry, bytes)
    }
    compare(dedup, model)
  }
}

function act(kind: Step['kind'], dedup: Dedup, model: DedupModel, entry: Entry, bytes: number): void {
  const { sender, id } = entry
  const record = dedup.find(sender, id)
  if (!record) throw new Error(`${sender} ${id} is forgotten`)
  if (kind === 'start') {
    record.state = 'running'
    model.start(entry)
  } else if (kind === 'finish') {
    dedup.finish(sender, record, outcome(bytes))
    const before = model.entries.length
    model.finish(entry, bytes)
    seen.finished++
    seen.forgottenForBytes += before - model.entries.length
  } else if (kind === 'settle') {
    dedup.settle(sender, record)
    const before = model.entries.length
    model.settle(entry)
    seen.forgottenForBytes += before - model.entries.length
  } else {
    dedup.withdraw(sender, record)
    model.withdraw(entry)
  }
}

function compare(dedup: Dedup, model: DedupModel): void {
  if (dedup.size !== model.entries.length) throw new Error(`${dedup.size} records, not ${model.entries.length}`)
  if (dedup.size > SMALL.idsPerNode) throw new Error('more than a node may hold')
  for (const { sender, id, state, expiresAt, bytes } of model.entries) {
    const record = dedup.find(sender, id)
    if (!record) throw new Error(`${sender} ${id} is forgotten`)
    if (record.state !== state || record.expiresAt !== expiresAt) throw new Error(`${sender} ${id} is ${record.state}`)
    if ((record.outcome?.payload.length ?? 0) !== bytes) throw new Error(`${sender} ${id} has another answer`)
  }
}
