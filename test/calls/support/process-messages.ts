import { capability } from 'hermes-peer'
import * as z from 'zod'

export type ToChild =
  | { type: 'block'; ms: number }
  | { type: 'stop' }
  | { type: 'call'; agent: string; capability: string; input: unknown; timeoutMs: number }

export type FromChild =
  | { type: 'ready'; address: string }
  | { type: 'result'; output?: unknown; code?: string }
  | { type: 'link down'; agentId: string; code: string }

/** What every child provides beside `block`. */
export const free = capability('free', {
  description: 'Answers at once.',
  input: z.string(),
  output: z.string(),
  effects: 'none',
})
