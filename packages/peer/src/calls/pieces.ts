import { HermesError } from '@hermes-peer/protocol'

/** Hands the pieces of a stream to whoever iterates, one for each that is asked for: nothing is read ahead. */
export interface Pieces {
  /** Resolves when the next piece is wanted. */
  wanted(): Promise<void>
  give(value: unknown): void
  /** No more come; with an error, the next one who asks gets it. */
  end(error: HermesError | undefined): void
  iterator(): AsyncIterator<unknown, undefined>
  cancel(reason?: string): void
}

interface Ask {
  resolve(result: IteratorResult<unknown, undefined>): void
  reject(error: HermesError): void
}

export function createPieces({ cancel }: { cancel(reason: HermesError): void }): Pieces {
  const asks: Ask[] = []
  let wake = (): void => undefined
  let ended = false
  /** Owed to the next one who asks. */
  let failure: HermesError | undefined

  const stop = (reason = 'the reader has stopped reading'): void => {
    if (!ended) cancel(new HermesError('CANCELLED', { message: reason }))
  }
  const settle = (ask: Ask): void => {
    const error = failure
    failure = undefined
    if (error) ask.reject(error)
    else ask.resolve(DONE)
  }

  return {
    wanted: () =>
      new Promise((resolve) => {
        if (asks.length > 0) resolve()
        else wake = resolve
      }),
    give: (value) => asks.shift()?.resolve({ done: false, value }),
    end(error) {
      if (ended) return
      ended = true
      failure = error
      for (const ask of asks.splice(0)) settle(ask)
    },
    iterator: () => ({
      next: () =>
        new Promise((resolve, reject) => {
          if (ended) {
            settle({ resolve, reject })
            return
          }
          asks.push({ resolve, reject })
          wake()
        }),
      async return() {
        stop()
        failure = undefined
        return DONE
      },
    }),
    cancel: stop,
  }
}

const DONE = { done: true, value: undefined } as const
