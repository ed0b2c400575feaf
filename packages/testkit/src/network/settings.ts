/** From `min` to `max`, both in the unit of the setting. */
export interface Range {
  readonly min: number
  readonly max: number
}

/** The numbers of a memory world. */
export interface WorldSettings {
  /** One way between two peers, ms; drawn once for each pair. Default 0.2–2, a local network. */
  readonly latencyMs: Range
  /** What the set-up of a connection takes beside three round trips, ms. Default 1–5, the cost of its cryptography. */
  readonly connectMs: Range
  /** A dial that nobody answers is given up after this, ms. Default 5,000. */
  readonly dialTimeoutMs: number
  /** A connection over which nothing can pass is given up by both ends after this, ms. Default 120,000, as libp2p's TCP does. */
  readonly brokenAfterMs: number
  /** Bytes of a channel and direction that may be on the way or unread. Default 256 KiB. */
  readonly windowBytes: number
  /** Bytes that may wait in a channel for room in the window; more than that resets it: `send` said `false` long before. Default 16 MiB. */
  readonly sendLimitBytes: number
  /** Life of a provider record, ms. Default 15 min. */
  readonly recordMs: number
  /** How often a provider announces itself anew, ms. Default 5 min. */
  readonly announceMs: number
  /** Largest gossip message, bytes. Default 4 MiB. */
  readonly gossipBytes: number
}

const MINUTE = 60_000

export const DEFAULT_SETTINGS: WorldSettings = {
  latencyMs: { min: 0.2, max: 2 },
  connectMs: { min: 1, max: 5 },
  dialTimeoutMs: 5_000,
  brokenAfterMs: 2 * MINUTE,
  windowBytes: 256 * 1024,
  sendLimitBytes: 16 * 1024 * 1024,
  recordMs: 15 * MINUTE,
  announceMs: 5 * MINUTE,
  gossipBytes: 4 * 1024 * 1024,
}
