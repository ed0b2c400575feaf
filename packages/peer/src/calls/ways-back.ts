import type { WorkRecord } from '../delivery/dedup.ts'
import type { Incoming } from '../delivery/inbox.ts'
import type { Job } from './job.ts'

/** Notes which neighbour the answer to an attempt goes back to, when that is not its sender. */
export function noteBack(record: WorkRecord, { leaf, via, link }: Incoming): void {
  if (via.length === 0) return
  record.back ??= new Map()
  record.back.set(leaf, link.remote.agentId)
}

/** The neighbour that the answer to an attempt goes back to. */
export function wayBack(record: WorkRecord, leaf: string, from: string): string {
  return record.back?.get(leaf) ?? from
}

/** The neighbours that wait for the outcome of a job. */
export function awaitedBy({ record, incoming }: Job): Set<string> {
  return new Set(record.waiters.map((leaf) => wayBack(record, leaf, incoming.from)))
}

/** That neighbour needs it no longer; true when nobody else does. */
export function withdraw({ record, incoming }: Job, neighbour: string): boolean {
  record.waiters = record.waiters.filter((leaf) => wayBack(record, leaf, incoming.from) !== neighbour)
  return record.waiters.length === 0
}

/** How a job without an outcome of its own has ended: handed on, or by its deadline, and answered then. */
export function endedAs({ record }: Job): string {
  return record.state === 'forwarded' ? 'FORWARDED' : 'TIMEOUT'
}
