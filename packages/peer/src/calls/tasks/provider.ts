import type { HermesError } from '@hermes-peer/protocol'
import type { Forwarding } from '../../forwarding/forwarding.ts'
import type { HandedTasks } from '../../forwarding/pass-on.ts'
import type { BuiltIn } from '../unqueued.ts'
import { createTaskHandOns } from './hand-on.ts'
import { createTaskBook, type TaskBookOptions } from './task-book.ts'
import { type TaskBuiltInsOptions, taskBuiltIns } from './task-built-ins.ts'
import { createTaskServer, type TaskServer, type TaskServerOptions } from './task-server.ts'

export interface TaskProviderOptions
  extends TaskBookOptions,
    Omit<TaskServerOptions, 'book' | 'handOns' | 'told'>,
    Omit<TaskBuiltInsOptions, 'book' | 'server'> {
  readonly forwarding: () => Pick<Forwarding, 'handOnTask' | 'resumeTask' | 'told'>
}

/** The provider's side of tasks: what it takes, what every peer offers about it, and what is kept of it. */
export interface TaskProvider extends Omit<TaskServer, 'cancel' | 'answer' | 'left'> {
  readonly builtIns: readonly (readonly [name: string, run: BuiltIn])[]
  /** Those that other agents have now. */
  readonly handed: HandedTasks
  /** Forgets tasks whose end has been kept long enough. */
  sweep(): void
}

export function createTaskProvider(options: TaskProviderOptions): TaskProvider {
  const book = createTaskBook(options)
  const { forwarding } = options
  const handOns = createTaskHandOns({ ...options, book, left: (task) => server.left(task) })
  const server = createTaskServer({ ...options, book, handOns, told: (thrown) => forwarding().told(thrown) })
  return {
    handed: handOns,
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
