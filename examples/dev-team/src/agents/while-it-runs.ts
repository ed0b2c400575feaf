import { MAX_PIECE } from '../contracts.ts'
import type { OnOutput } from '../process/command.ts'
import { createLiveText } from '../process/live-text.ts'

/** Yields what a run writes while it goes on, and returns what it comes to. */
export async function* whileItRuns<T>(
  run: (onOutput: OnOutput) => Promise<T>,
): AsyncGenerator<{ text: string; leftOut?: number }, T, undefined> {
  const text = createLiveText({ pieceLength: MAX_PIECE })
  const running = run(text.push).finally(text.end)
  // Told when it is awaited below; a reader that goes away before that ends it by the signal of its call.
  running.catch(() => {})
  yield* text.pieces()
  return await running
}
