import type { RowClient } from '../peers/peer.ts'

export const SCENARIOS = [
  'latency',
  'throughput',
  'stream',
  'big',
  'cold',
  'idle',
  'discovery',
  'failover',
  'journal',
] as const
export type ScenarioName = (typeof SCENARIOS)[number]

/** Orders to a client process: what to measure, with durations in ms. */
export type Order =
  | { readonly measure: 'latency'; readonly ms: number; readonly warmMs: number; readonly pids: readonly number[] }
  | {
      readonly measure: 'throughput'
      readonly ms: number
      readonly warmMs: number
      readonly inFlight: number
      readonly pids: readonly number[]
    }
  | { readonly measure: 'stream'; readonly count: number; readonly ms: number; readonly pids: readonly number[] }
  | { readonly measure: 'big'; readonly bytes: number; readonly ms: number }
  | { readonly measure: 'journal'; readonly folder: string; readonly ms: number; readonly together: number }
  | { readonly measure: 'discovery'; readonly capability: string; readonly ms: number }
  | {
      readonly measure: 'failover'
      /** Calls a second, whatever comes back. */
      readonly rate: number
      readonly ms: number
      /** When to ask for the busiest server to be killed. */
      readonly killAfterMs: number
      readonly timeoutMs: number
    }

/** Figures by name; a name ends in its unit where it has one. */
export type Figures = Readonly<Record<string, number>>

/** Tells the runner, in the middle of a measurement, that something is due. */
export type Notify = (note: 'discovering' | 'kill', detail?: string) => void

export interface Bench {
  readonly client: RowClient
  readonly notify: Notify
}
