import { capability } from 'hermes-peer'
import { z } from 'zod'

const common = {
  input: z.object({ id: z.string(), ms: z.number() }),
  output: z.object({ id: z.string() }),
}

export const CONTRACTS = {
  none: capability('chaos_none', { description: 'Work that may be repeated.', ...common, effects: 'none' }),
  once: capability('chaos_once', { description: 'Work that must not be repeated.', ...common, effects: 'once' }),
} as const

export type Effects = keyof typeof CONTRACTS

/** One line of what an agent has seen, written before anything else happens: a kill leaves every one that was written. */
export type LogLine =
  | { readonly at: 'submitted'; readonly id: string; readonly effects: Effects }
  | {
      readonly at: 'handed over'
      readonly id: string
      readonly effects: Effects
      readonly task: string
      readonly acknowledged: boolean
    }
  | { readonly at: 'acknowledged'; readonly task: string }
  | { readonly at: 'refused'; readonly id: string; readonly code: string }
  | { readonly at: 'started'; readonly id: string; readonly effects: Effects; readonly by?: string }
  | { readonly at: 'ended'; readonly task: string; readonly code: string }

export interface AgentOptions {
  readonly agentId: string
  readonly folder: string
  readonly port: number
  readonly bootstrap: readonly string[]
  readonly log: string
}

/** From the runner. */
export type Order = { readonly submit: number } | { readonly stop: true }
/** To the runner, twice a second: what it has submitted, and what it still waits for. */
export interface State {
  readonly submitted: number
  readonly open: number
}
