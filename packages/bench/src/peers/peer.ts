/** What every row carries, there and back: an agent request of 1,024 bytes of JSON (see `floor/lib/payload.mjs`). */
export interface Envelope {
  v: number
  id: string
  from: string
  to: string
  capability: string
  ts: number
  ttlMs: number
  trace: { traceId: string; spanId: string; depth: number }
  meta: { contentType: string; priority: number; budget: { tokens: number; usd: number }; tags: string[] }
  body: { text: string }
  /** Which of several servers answered; only where a scenario asks for it. */
  by?: string | undefined
}

/** One piece of a stream: 1,024 bytes of JSON (see `floor/lib/payload.mjs`). */
export interface Frame {
  id: string
  seq: number
  chunk: string
}

/** What the runner tells a server or a client process to be. */
export interface RowContext {
  /** The capability that is served and called. */
  readonly capability: string
  /** Different for each process of one run. */
  readonly instance: string
  /** An empty folder shared by the processes that belong together, for keys and trust. */
  readonly folder: string
  /** Where servers of this run are, as they reported it. */
  readonly addresses: readonly string[]
  /** Servers put their instance into each answer. */
  readonly tagged: boolean
  /** Clients give up on a call after this, ms. */
  readonly timeoutMs: number
}

export interface RowServer {
  /** Passed on to the others in `addresses`. */
  readonly address: string
  close(): Promise<void>
}

export interface RowClient {
  /** Rejects when nobody serves `capability` (default: the one of the context), and when no answer came in time. */
  request(envelope: Envelope, capability?: string): Promise<Envelope>
  /** Has the server send so many frames, each handed over in its order; resolves at the end that the server tells. */
  stream(count: number, onFrame: (frame: Frame) => void): Promise<void>
  /** Resolves when `count` servers of the capability are known. */
  knows(count: number): Promise<void>
  close(): Promise<void>
}

/** One thing that is measured. Its modules are loaded only in its own processes, so that start and memory are its own. */
export interface Row {
  startServer(context: RowContext): Promise<RowServer>
  startClient(context: RowContext): Promise<RowClient>
}

/** The server's work in every row. */
export function echo(envelope: Envelope, context: RowContext): Envelope {
  const answer = { ...envelope, from: envelope.to, to: envelope.from }
  return context.tagged ? { ...answer, by: context.instance } : answer
}
