/** Work that is done one piece after another, in the order in which it was asked for. */
export interface Turns {
  /** Rejects with the reason of the signal when that fires before its turn has come. */
  take<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T>
}

export function createTurns(): Turns {
  let last: Promise<unknown> = Promise.resolve()
  return {
    take(signal, work) {
      const turn = last.then(() => {
        signal.throwIfAborted()
        return work()
      })
      last = turn.catch(() => {})
      return turn
    },
  }
}
