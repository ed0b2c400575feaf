import type { Outcome } from '../delivery/dedup.ts'
import type { Job } from './job.ts'

/** Where the output of a streaming job goes. */
export interface JobSink {
  /** Carries what the handler yields; resolves with what it returns, rejects with why it did not come to that. */
  carry(returned: unknown, job: Job): Promise<unknown>
  /** The last word, told once: later ones are ignored. */
  end(outcome: Outcome): void
}

/** How a streaming job is ended from the side of its stream. */
export interface StreamingJob {
  /** The reader has gone, or cancelled. */
  abort(reason: Error): void
  /** Its time is over: the reader is told. */
  expire(message: string): void
  /** Monotonic ms. */
  readonly deadline: number
}
