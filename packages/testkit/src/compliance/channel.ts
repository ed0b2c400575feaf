import type { Channel } from 'hermes-peer'
import { CHANNEL_CHECKS, type Open } from './channel-checks.ts'
import { createRecorder, type Recorder } from './recorder.ts'

/** The two ends of one new channel, and the way to let time pass. */
export interface ChannelPair {
  /** The end that opened it; nobody listens yet. */
  readonly channel: Channel
  /** Resolves once the condition holds; rejects when it does not come to hold. */
  until(condition: () => boolean): Promise<void>
  dispose(): Promise<void>
}

/** Opens a channel between two peers; `accept` is the handler of the side that did not open it. */
export type MakeChannelPair = (accept: (channel: Channel) => void) => Promise<ChannelPair>

/** One promise of `Channel`. `run` rejects with an assertion error when it is not kept. */
export interface ChannelCheck {
  readonly name: string
  run(): Promise<void>
}

/**
 * What each implementation of `Channel` must do, as plain functions for any test runner:
 * `for (const { name, run } of channelCompliance(makePair)) test(name, run)`.
 */
export function channelCompliance(makePair: MakeChannelPair): ChannelCheck[] {
  return Object.entries(CHANNEL_CHECKS).map(([name, check]) => ({ name, run: () => runOne(makePair, check) }))
}

async function runOne(makePair: MakeChannelPair, check: (open: Open) => Promise<void>): Promise<void> {
  let pair: ChannelPair | undefined
  try {
    await check(async (onAccept) => {
      let there: Recorder | undefined
      const opened = await makePair((channel) => {
        there = createRecorder(channel)
        onAccept?.(there)
        there.listen()
      })
      pair = opened
      await opened.until(() => there !== undefined)
      return { here: createRecorder(opened.channel), there: there as unknown as Recorder, until: opened.until }
    })
  } finally {
    await pair?.dispose()
  }
}
