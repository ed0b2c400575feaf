import { constants } from 'node:os'

/** Ctrl-C, a request to end, a closed terminal, or nobody reading the output any more. */
export interface Interruption {
  /** Rejects at the first one. */
  readonly happened: Promise<never>
  /** 128 + the number of the signal; undefined while nothing has happened. */
  readonly exitCode: number | undefined
  throwIfInterrupted(): void
  /** Called at a second one: the user does not want to wait. */
  onSecond(hurry: () => void): void
  dispose(): void
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

export function onInterruption(): Interruption {
  let exitCode: number | undefined
  let hurry = (): void => {}
  let reject: (reason: unknown) => void = () => {}
  const happened = new Promise<never>((_, fail) => {
    reject = fail
  })
  // Whoever races against it hears of it.
  happened.catch(() => {})

  const interrupt = (signal: NodeJS.Signals): void => {
    if (exitCode !== undefined) {
      hurry()
      return
    }
    exitCode = 128 + constants.signals[signal]
    reject(new Error(signal))
  }
  const onPipeError = (error: NodeJS.ErrnoException): void => {
    if (error.code === 'EPIPE' && exitCode === undefined) interrupt('SIGPIPE')
  }
  for (const signal of SIGNALS) process.on(signal, interrupt)
  process.stdout.on('error', onPipeError)
  return {
    happened,
    get exitCode() {
      return exitCode
    },
    throwIfInterrupted() {
      if (exitCode !== undefined) throw new Error('interrupted')
    },
    onSecond(run) {
      hurry = run
    },
    dispose() {
      for (const signal of SIGNALS) process.off(signal, interrupt)
    },
  }
}
