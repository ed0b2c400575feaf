import { type CallOptions, isError, type Peer } from 'hermes-peer'
import { runTests, watchTests } from '../contracts.ts'
import type { Trial } from '../search/confirm.ts'
import type { WorkNames } from './forward-calls.ts'
import { oneAtATime } from './one-at-a-time.ts'
import { patiently } from './patiently.ts'
import { type Piece, readStream } from './read-stream.ts'
import { correlationId, toBase64 } from './wire.ts'

export interface TestRun extends Trial {
  readonly durationMs: number
  readonly excerpt: string
  /** Why there is no verdict. */
  readonly reason?: 'command_not_found' | 'setup_failed' | 'skipped' | 'folder_missing' | 'patch_does_not_apply'
}

interface Told {
  readonly passed: boolean
  readonly durationMs: number
  readonly summary: string
  readonly excerpt?: string | undefined
}

/** Has the test run by whichever tester is free. */
export interface TestClient {
  run(work: { commit: string; patch?: Uint8Array; excerpt?: boolean }, signal?: AbortSignal): Promise<TestRun>
  /** The same for a commit as it is, with what the test writes told as it comes. */
  watch(commit: string, signal: AbortSignal | undefined, onPiece: OnPiece): Promise<TestRun>
  /** Testers that can be reached now; at least 1. */
  testers(): Promise<number>
}

/** `by`: the tester that the test runs at. */
export type OnPiece = (piece: Piece & { readonly by: string; readonly commit: string }) => void

export function createTestClient({
  peer,
  work,
  timeoutMs,
}: {
  peer: Peer
  work: WorkNames
  timeoutMs: number
}): TestClient {
  const turns = oneAtATime(peer)

  /** One call under a correlation of its own, by which it is named while it lasts. */
  const ask = async (
    about: string,
    signal: AbortSignal | undefined,
    call: (options: CallOptions & { correlationId: string }) => Promise<Told>,
  ): Promise<TestRun> => {
    const id = correlationId()
    work.name(id, about)
    try {
      const options = { timeoutMs, correlationId: id, ...(signal === undefined ? {} : { signal }) }
      const done = await turns.run(id, () => call(options))
      return { ...done, verdict: done.passed ? 'pass' : 'fail', excerpt: done.excerpt ?? '' }
    } catch (error) {
      if (!isError(error, runTests, 'CANNOT_RUN')) throw error
      const { reason, detail } = error.data
      return { verdict: 'skip', reason, summary: detail, durationMs: 0, excerpt: '' }
    } finally {
      work.forget(id)
    }
  }

  return {
    run({ commit, patch, excerpt }, signal) {
      const input = {
        commit,
        ...(patch === undefined ? {} : { patch: toBase64(patch) }),
        ...(excerpt ? { excerpt } : {}),
      }
      const about = patch === undefined ? commit : `${commit} patched`
      return patiently(() => ask(about, signal, (options) => peer.call(runTests, input, options)), signal)
    },
    watch(commit, signal, onPiece) {
      const once = () =>
        ask(commit, signal, (options) =>
          readStream(peer.stream(watchTests, { commit }, options), (piece) =>
            onPiece({ ...piece, commit, by: work.agentOf(options.correlationId) ?? '' }),
          ),
        )
      return patiently(once, signal)
    },
    async testers() {
      const candidates = await peer.find({ capability: runTests.name })
      return Math.max(1, candidates.filter(({ status, usable }) => usable || status === 'online').length)
    },
  }
}
