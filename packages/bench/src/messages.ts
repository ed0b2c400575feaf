import type { RowContext } from './peers/peer.ts'
import type { RowName } from './rows.ts'
import type { Figures, Order } from './scenarios/scenario.ts'

/** What a process is started with. */
export interface WorkerStart {
  readonly role: 'server' | 'client'
  readonly row: RowName
  readonly context: RowContext
}

export type ToWorker = { readonly do: 'measure'; readonly order: Order } | { readonly do: 'exit' }

export type FromWorker =
  /** A server can be called. */
  | { readonly is: 'ready'; readonly address: string; readonly joinsAtMs: number }
  /** A client has its first answer. */
  | { readonly is: 'first' }
  | { readonly is: 'note'; readonly note: string; readonly detail?: string }
  | { readonly is: 'result'; readonly figures: Figures }
  | { readonly is: 'failed'; readonly message: string }
