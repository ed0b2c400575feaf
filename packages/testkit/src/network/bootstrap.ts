import type { Timeline } from '../clock/timeline.ts'
import type { SeededRandom } from '../random/seeded-random.ts'

/** First pause after a failed dial, longest pause, and how often a living connection is looked at, ms. */
const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 30_000
const LOOK_MS = 1_000

/**
 * Keeps one bootstrap address connected: dials at once, again with growing pauses after failures, and anew when the connection
 * is lost. Returns the way to stop.
 */
export function keepConnected(options: {
  timeline: Timeline
  random: SeededRandom
  isConnected(): boolean
  dial(): Promise<unknown>
}): () => void {
  const { timeline, random } = options
  let stopped = false
  let cancel = () => {}
  let pause = FIRST_PAUSE_MS
  const again = (ms: number) => {
    if (!stopped) cancel = timeline.schedule(ms, look)
  }
  const look = () => {
    if (options.isConnected()) {
      pause = FIRST_PAUSE_MS
      return again(LOOK_MS)
    }
    options.dial().then(
      () => again(LOOK_MS),
      () => {
        again(random.between(pause / 2, pause))
        pause = Math.min(LONGEST_PAUSE_MS, pause * 2)
      },
    )
  }
  again(0)
  return () => {
    stopped = true
    cancel()
  }
}
