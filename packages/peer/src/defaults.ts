const SECOND = 1000
const MINUTE = 60 * SECOND
const MiB = 1024 * 1024

/** Every number of the runtime: its unit stands in its name (ms unless said otherwise), its reason beside it. */
export const DEFAULTS = {
  /** A model thinks for long; most frameworks that chose 6 s had to raise it. */
  callTimeoutMs: MINUTE,
  /** A call that has passed its deadline is ended this much later at the latest. */
  deadlineGraceMs: 250,
  /** On one machine or in one site a dial takes milliseconds; a dead host must not eat the call. */
  dialTimeoutMs: 2 * SECOND,
  /** Four messages and two signatures; the rest is for slow networks. */
  handshakeTimeoutMs: 5 * SECOND,
  /** Attempts of one request, by the originator only. */
  maxAttempts: 3,
  /** First wait before the same candidate is asked again; doubles, with full jitter. */
  retryBackoffMs: SECOND,
  retryBackoffCapMs: 4 * SECOND,
  /** Retry budget: a bucket, and what each call puts back: keeps the amplification under 1.1 in the long run. */
  retryBudget: 100,
  retryRefill: 0.1,
  /** How long `hermes.outcome` is asked before the outcome counts as unknown. */
  outcomeTimeoutMs: 5 * SECOND,
  /** How often a run that is still going is asked for again. */
  outcomePollMs: 2 * SECOND,
  /** Candidates kept for failover. */
  candidatesKept: 3,

  /** Envelopes held behind a gap, per sender. */
  windowItems: 256,
  windowBytes: 4 * MiB,
  /** A gap is given up after this. */
  gapTimeoutMs: 5 * SECOND,
  /** Deduplication: ids and bytes of answers kept per sender, ids in all. */
  dedupIdsPerSender: 10_000,
  dedupBytesPerSender: 16 * MiB,
  dedupIdsPerNode: 200_000,
  /** On top of the measured clock offset when `timestamp` and `expires_at` are judged. */
  clockToleranceMs: 30 * SECOND,
  /** A larger offset is refused in the handshake. */
  maxClockOffsetMs: 10 * MINUTE,
  /** Envelopes that do not verify, from one link, before it is cut. */
  violationsPerLink: 16,

  /** Calls in flight per peer and per node: over it the caller queues, the provider answers `BUSY`. */
  inFlightPerPeer: 256,
  inFlightPerNode: 4096,
  /** Calls that wait for a place, per peer; then `QUEUE_FULL`. */
  outboxPerPeer: 1000,
  /** Waiting work gains one level of priority per this time. */
  priorityAgeMs: 10 * SECOND,
  /** A caller that lost its link may come back in this time before its running work is aborted. */
  callerGraceMs: 2 * SECOND,

  heartbeatMs: 15 * SECOND,
  /** A heartbeat is also due after so many frames or bytes received: it tells which answers have arrived. */
  receiptFrames: 512,
  receiptBytes: 2 * MiB,
  /** With calls pending, silence of this length is probed … */
  silenceMs: 5 * SECOND,
  /** … this often, and three unanswered probes destroy the link: 17 s in all. */
  probeMs: 4 * SECOND,
  probesLost: 3,
  /** An idle link is probed after this silence: three heartbeats. */
  idleSilenceMs: 45 * SECOND,
  /** An own event loop that stood still this long makes all detectors start over. */
  stallMs: 3 * SECOND,
  /** The one ticker of a node. */
  tickMs: SECOND,
  /** Bytes waiting in one link before it counts as blocked. */
  linkBufferBytes: 8 * MiB,
  /** A link that takes nothing for this long is cut. */
  writeStallMs: 10 * SECOND,
  /** Of two links of one pair the newer stays when the older is older than this: its dialler had none. */
  twoLinksMs: 5 * SECOND,
  /** A replaced link closes when its buffers are empty, at the latest after this. */
  retiredLinkMs: 5 * SECOND,
  pendingHandshakes: 64,
  pendingHandshakesPerAddress: 8,
  /** Handshakes that wait for a place; they wait as long as a handshake may take. */
  waitingHandshakes: 256,
  /** Reconnect: full jitter from the first, doubling, up to the cap. */
  reconnectMs: 200,
  reconnectCapMs: 5 * SECOND,
  reconnectIdleCapMs: MINUTE,
  /** A link that stood this long resets the back-off. */
  reconnectStableMs: 10 * SECOND,
  maxConnections: 300,

  /** Budget of a streaming call: a long answer of a model, read by a person. */
  streamTimeoutMs: 5 * MINUTE,
  /** Silence between two chunks that ends a stream; before the first one only the budget counts, as a model may think. */
  streamIdleMs: 30 * SECOND,
  /** The opening envelope of a stream must have come by then: one write of an honest peer. */
  streamOpenMs: 5 * SECOND,
  /** Bytes as received that wait for the reader of one stream, and the shares of it at which its writer is told to pause … */
  streamBufferBytes: 4 * MiB,
  streamPauseAt: 0.8,
  /**
   * … to go on, and is given up because it did not listen. What is on its way when it pauses (a window of 256 KiB and a write)
   * must fit between the first and the last of these: with them the buffer needs 2.5 MiB.
   */
  streamResumeAt: 0.4,
  streamAbortAt: 0.95,
  /** Chunks are put together up to this size, bytes: a frame of the multiplexer. */
  streamWriteBytes: 60 * 1024,
  /** Streams open at a time with one peer and in all, either side's: a caller waits for a place, and over twice of it gets `BUSY`. */
  streamsPerPeer: 64,
  streamsPerNode: 1024,
  /** Payloads that travel apart and are being received, bytes they are said to have: two of the largest from one peer, four in all. */
  payloadBytesPerPeer: 128 * MiB,
  payloadBytesPerNode: 256 * MiB,
  /** How often the progress of such a payload is told, bytes. */
  progressBytes: MiB,

  presenceMs: 10 * SECOND,
  presenceJitter: 0.1,
  /** Presence reports missed before a peer is suspected, and before it counts as offline. */
  presenceSuspect: 3,
  presenceOffline: 6,
  /** Announcements heard of one agent per window; more are ignored. */
  presencePerWindow: 4,
  /** Beside these, reports that tell of a new state or a new life. */
  presenceChanges: 3,
  presenceWindowMs: 10 * SECOND,
  /** Agents kept in the directory; the longest silent go first. */
  directoryAgents: 10_000,
  /** Provider look-ups are repeated after this, and used up to the second age when the DHT cannot be reached. */
  lookupFreshMs: 30 * SECOND,
  lookupStaleMs: 2 * MINUTE,
  /** A look-up ends after this, or at once when enough was found. */
  lookupTimeoutMs: 3 * SECOND,
  /** A manifest asked over a link. */
  manifestTimeoutMs: 5 * SECOND,
  manifestLifeMs: 48 * 60 * MINUTE,
  /** Samples kept per agent and capability to tell the median latency. */
  latencySamples: 64,
  /** Weight of the newest call in the moving success rate. */
  successWeight: 0.1,
  /** Score difference that counts as equal when two are drawn. */
  nearEqual: 0.05,
} as const

/** The numbers that can be set; each stays a positive number. */
export type Tunables = { readonly [K in keyof typeof DEFAULTS]: number }
