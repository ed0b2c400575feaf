import type { Peer } from 'hermes-peer'

/** Hands calls to the runtime one after another, each as soon as an agent has been chosen for the one before. */
export interface OneAtATime {
  /** `correlationId` is that of the call which `start` makes. */
  run<T>(correlationId: string, start: () => Promise<T>): Promise<T>
}

/** Calls made in the same instant are all ranked by the same figures, and would all go to the same agent. */
export function oneAtATime(peer: Peer): OneAtATime {
  // Calls for which no agent has been chosen yet: at most as many as are asked for at once.
  const waiting = new Map<string, () => void>()
  let last: Promise<unknown> = Promise.resolve()
  peer.events.on('call.chosen', ({ correlationId }) => {
    if (correlationId !== undefined) waiting.get(correlationId)?.()
  })
  return {
    run(correlationId, start) {
      const chosen = new Promise<void>((resolve) => waiting.set(correlationId, resolve))
      const result = last.then(start)
      last = Promise.race([chosen, result]).then(
        () => waiting.delete(correlationId),
        () => waiting.delete(correlationId),
      )
      return result
    },
  }
}
