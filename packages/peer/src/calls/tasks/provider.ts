import type { HermesError } from '@hermes-peer/protocol'
import type { BuiltIn } from '../unqueued.ts'
import { createTaskBook, type TaskBookOptions } from './task-book.ts'
import { type TaskBuiltInsOptions, taskBuiltIns } from './task-built-ins.ts'
import { createTaskServer, type TaskServer, type TaskServerOptions } from './task-server.ts'

export interface TaskProviderOptions
  extends TaskBookOptions,
    Omit<TaskServerOptions, 'book'>,
    Omit<TaskBuiltInsOptions, 'book' | 'server'> {}

/** The provider's side of tasks: what it takes, what every peer offers about it, and what is kept of it. */
export interface TaskProvider extends Omit<TaskServer, 'cancel' | 'answer'> {
  readonly builtIns: readonly (readonly [name: string, run: BuiltIn])[]
  /** Forgets tasks whose end has been kept long enough. */
  sweep(): void
}

export function createTaskProvider(options: TaskProviderOptions): TaskProvider {
  const book = createTaskBook(options)
  const server = createTaskServer({ ...options, book })
  return {
    builtIns: taskBuiltIns({ ...options, book, server }),
    start: () => server.start(),
    submitted: (incoming) => server.submitted(incoming),
    joined: (incoming) => server.joined(incoming),
    capabilityCame: (name) => server.capabilityCame(name),
    drain: () => server.drain(),
    unfinished: () => server.unfinished(),
    stop(reason: HermesError) {
      server.stop(reason)
      book.stop(reason)
    },
    sweep: () => book.sweep(),
  }
}
