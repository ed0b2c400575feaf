const SECOND = 1000
const MINUTE = 60 * SECOND
const DAY = 24 * 60 * MINUTE
const MiB = 1024 * 1024

/**
 * What may be on its way on one stream, bytes: yamux's window. Both ends of a connection must agree on it, so it cannot be
 * set; it never grows, so that a bulk stream holds up others for one window only.
 */
export const STREAM_WINDOW_BYTES = 256 * 1024

/** Every number of the runtime: its unit stands in its name (ms unless said otherwise), its reason beside it. */
export const DEFAULTS = {
  /** A model thinks for long; most frameworks that chose 6 s had to raise it. */
  callTimeoutMs: MINUTE,
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
  /**
   * Answers that wait for one link, before it is cut: as many as a sender may have ids remembered, so that nobody who reads
   * comes to it.
   */
  answersWaiting: 10_000,
  /** And of so many bytes: those of all calls that it may have in flight, each as large as an envelope. */
  answerBytesWaiting: 256 * MiB,
  /** Waiting work gains one level of priority per this time. */
  priorityAgeMs: 10 * SECOND,
  /** A person comes back within this time; whoever needs longer asks for a lease. */
  sessionIdleMs: 15 * MINUTE,
  /** Sessions with one agent, and in all (ten agents at their bound): a mark is a few hundred bytes. */
  sessionsPerPeer: 1000,
  sessionsPerNode: 10_000,
  /** How long an agent is given to take note of a close or a lease. */
  sessionTellMs: 5 * SECOND,
  /** Context by reference lives as long as a session may idle, at most and by default. */
  contextLifeMs: 15 * MINUTE,
  /** Context that is offered at a time: bytes as JSON, and references. */
  contextBytes: 16 * MiB,
  contextRefs: 1000,
  /** One answer of up to 1 MiB from a peer that is linked already. */
  contextTimeoutMs: 10 * SECOND,
  /** At a stop, what runs may end in this time: orchestrators kill 30 s after their signal, the rest is for the goodbye. */
  drainMs: 25 * SECOND,
  /** What is aborted then may still answer, if it heeds its signal. */
  abortGraceMs: 250,
  /** A caller that lost its link may come back in this time before its running work is aborted. */
  callerGraceMs: 2 * SECOND,

  /** A submit that nobody has acknowledged by then returns its handle all the same. */
  submitTimeoutMs: 10 * SECOND,
  /** A draft without an ack is sent again after the first, then after twice that, up to the cap. */
  resendMs: 3 * SECOND,
  resendCapMs: 5 * SECOND,
  /** Drafts that wait for an ack, per agent and in all; then `QUEUE_FULL`. */
  draftsPerPeer: 1000,
  draftsPerNode: 50_000,
  draftBytesPerNode: 256 * MiB,
  /** What failed to be stored is tried again after this. */
  journalRetryMs: SECOND,
  /** Acknowledged events remembered, so that none is handed on twice; then no more are taken. */
  storedEvents: 50_000,
  /** Of one sender: five of them at their bound fill it. */
  storedEventsPerSender: 10_000,
  /** Tasks kept per owner and in all, and their bytes. At the bound ends that were told go first; without such `BUSY`. */
  tasksPerOwner: 10_000,
  tasksPerNode: 50_000,
  taskBytesPerNode: 256 * MiB,
  /** News kept of one task; older ones are folded into one. */
  taskEvents: 256,
  taskEventBytes: 4 * MiB,
  /** Largest single piece of news, bytes, and of one answer that carries several: well within an envelope. */
  taskNewsBytes: 256 * 1024,
  taskPageBytes: 512 * 1024,
  /** The same in keys of objects, of which a payload has 10,000: the last partial and the open questions fit into one answer. */
  taskNewsKeys: 4_900,
  taskPageKeys: 9_900,
  /** A task without a bound of its own has to end after this. */
  taskBudgetMs: 60 * MINUTE,
  /** Its end is told for this long. */
  taskKeptMs: 24 * 60 * MINUTE,
  /** How long one question for news waits for some: one that is lost beside a living link is noticed not much later. */
  taskWatchMs: 8 * SECOND,
  /** An answer over hops whose maker nobody can prove is asked for again so long: whoever can may just be restarting. */
  taskUnprovenMs: 2 * MINUTE,
  /** Such questions that wait at a time, per task. */
  taskWatchers: 16,
  /** After a restart a task waits this long for its capability to be provided again. */
  taskCapabilityGraceMs: MINUTE,
  /** Messages on their way through this agent: over it `ctx.forward` throws `BUSY`. As many as a node may have in flight. */
  waysKept: 4096,
  /** A way back outlives the budget that was handed on by this, so that a timeout told at its end still passes. */
  wayGraceMs: 2 * SECOND,
  /** Signed manifests of other agents kept to be shown to others, up to 16 KiB each; the least used goes first. */
  manifestsKept: 512,
  /**
   * Manifests of third agents asked of neighbours at one time; further ones are not asked for. As many are asked for at a time
   * when everybody may be meant.
   */
  manifestsAsked: 64,
  /** Frames of one link, up to 1 MiB each, that wait for the manifest of their maker; further ones are refused. */
  framesAwaitingKeys: 8,

  /** An instance certificate lives for so long … */
  instanceLifeMs: 90 * DAY,
  /** … and whoever has met a newer one takes the one before for so long: time enough to bring back a process with its old key. */
  instanceOverlapMs: 7 * DAY,
  /** A peer rotates by itself when its certificate has so long left: as long as an overlap. */
  instanceRenewMs: 7 * DAY,
  /** At a rotation what still uses the old key may go on for so long: the longest stream. Then its connections are closed. */
  instanceDrainMs: 5 * MINUTE,
  /** Revocations by keys that are not on record, looked at per window of presence: anybody can make keys. */
  revocationStrangers: 32,

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
  /**
   * Bytes of frames that wait in one link although it says that it is blocked, before it is cut. Calls and answers wait before
   * it, unsigned; only what cannot wait there comes to this: heartbeats, cancels, what is handed on.
   */
  linkBufferBytes: 32 * MiB,
  /** Bytes received on one link that wait to be handled, before its sender is held back; it goes on below half of that. */
  linkReadBytes: 2 * MiB,
  /** Bytes left in the transport of a link that closes: half of what its write buffer takes. */
  lastWordsBytes: 8 * MiB,
  /** A link whose transport gives off not one byte of what waits for this long is cut; a slow reader takes its time. */
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
  /**
   * Behind the gate: incoming connections of peers that only a handshake can tell of, at a time, and how long one may take to
   * come to a link; and connections without a link from one site (24 bits of IPv4, 48 of IPv6, or one relay), which is how many
   * addresses one attacker has for nothing.
   */
  unknownConnections: 64,
  unknownConnectionMs: 10 * SECOND,
  connectionsPerGroup: 32,

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
   * must fit between the first and the last of these, so with them the buffer needs 2.1 MiB; less is refused.
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
  /**
   * Reports of agents that are not admitted here, per neighbour and in all per window: they are passed on for others, at a
   * millisecond or two each. More are ignored before they are verified.
   */
  presenceStrangers: 64,
  presenceStrangersPerNode: 256,
  /** Agents kept in the directory; the longest silent go first. */
  directoryAgents: 10_000,
  /** Provider look-ups are repeated after this. */
  lookupFreshMs: 30 * SECOND,
  /** An answer that cannot be had anew is used up to this age: agents move rarely, and a dial tells soon. */
  lookupStaleMs: 2 * MINUTE,
  /** While a directory cannot be reached, calls that are served without it look for it at most this often. */
  lookupRetryMs: 3 * SECOND,
  /** Found peers dialled at a time by one look-up. One that has not come up after the patience, ms, makes room for the next one. */
  lookupDials: 20,
  lookupDialPatienceMs: 500,
  /** Registrations in directories that forget: renewed each third of it, so that a dead peer is named no longer than this. */
  directoryLeaseMs: MINUTE,
  /** A look-up ends after this, or at once when enough was found. */
  lookupTimeoutMs: 3 * SECOND,
  /** A manifest asked over a link. */
  manifestTimeoutMs: 5 * SECOND,
  manifestLifeMs: 48 * 60 * MINUTE,
  /** One's own is signed anew this often: whoever asks gets one that lives for at least three quarters of that. */
  manifestRenewMs: 12 * 60 * MINUTE,
  /** Samples kept per agent and capability to tell the median latency. */
  latencySamples: 64,
  /** Weight of the newest call in the moving success rate. */
  successWeight: 0.1,
  /**
   * Score difference that counts as equal when two are drawn: 20 points of load. Reports of equal agents differ by up to that by
   * chance, and each difference that counts sends one of them no calls until the next report.
   */
  nearEqual: 0.08,
  /** Share of the calls that go to agents with fewer than `provenCalls` from here, while others are there. */
  newcomerShare: 0.05,
  provenCalls: 10,
  /** Latency older than this breaks no SLA: whoever was slow has another chance. */
  slaWindowMs: 5 * MINUTE,
  /**
   * Share of a wish's words, by their rarity, that a capability must have to be what is meant. On the labelled set the right ones reach
   * 0.32 and more, what nobody offers 0.25 at most.
   */
  intentLeastShare: 0.3,
  /** The same for embeddings: unrelated texts of common models stay below it. Models differ; set it for yours. */
  intentLeastCosine: 0.4,
  /** Only capabilities that mean a wish at least this well beside the best one stand in for it. */
  intentBand: 0.8,
  /** Capabilities compared by embedding for one wish; where more are known, those nearest by words. */
  intentEmbedded: 512,
  /** Vectors kept: 6 KiB each for a model of 1,536 numbers. */
  intentVectors: 4096,
  /** One request for vectors: a small model in the same site takes tenths of it. */
  embedTimeoutMs: 5 * SECOND,

  /** Commits, and bytes of them, that wait for the journal; then `QUEUE_FULL`. Some seconds of a slow disk. */
  journalWaitingCommits: 10_000,
  journalWaitingBytes: 64 * MiB,
  /** One value of the journal: an envelope with all around it; what is larger is kept in parts. */
  journalValueBytes: 4 * MiB,
  /** Left free on the disk of the journal, so that it can tidy up and open again: commits that would eat it are refused. */
  journalSpareBytes: 16 * MiB,
  /** Breaker, per agent and capability. So many failures in a row are no chance any more … */
  breakerRow: 5,
  /** … nor is this share of at least so many calls in the window, for an agent that fails now and then. */
  breakerShare: 0.5,
  breakerLeast: 20,
  breakerWindowMs: 30 * SECOND,
  /** A process restarts and warms up in about this time; then one call tries. */
  breakerOpenMs: 10 * SECOND,
  /** Share of calls that try an agent whose probe is due although others are there: one failure per open time at most. */
  breakerProbeShare: 0.1,

  /** How often the file of a policy is looked at. One that has changed is read at the next look that finds it at rest. */
  policyLookMs: SECOND,
  /** Counts kept of who uses what: a hundred bytes for each agent and rule with limits. At the bound `QUOTA_EXCEEDED`. */
  policyCounts: 50_000,
} as const

/** The numbers that can be set; each stays a positive number. */
export type Tunables = { readonly [K in keyof typeof DEFAULTS]: number }
