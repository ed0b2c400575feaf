import { type CallOptions, isError, type Peer } from 'hermes-peer'
import { runTests } from '../contracts.ts'
import type { Trial } from '../search/confirm.ts'
import type { WorkNames } from './forward-calls.ts'
import { oneAtATime } from './one-at-a-time.ts'
import { patiently } from './patiently.ts'
import { correlationId, toBase64 } from './wire.ts'

export interface TestRun extends Trial {
  readonly durationMs: number
  readonly excerpt: string
  /** Why there is no verdict. */
  readonly reason?: 'command_not_found' | 'setup_failed' | 'skipped' | 'folder_missing' | 'patch_does_not_apply'
}

/** Has the test run by whichever tester is free. */
export interface TestClient {
  run(work: { commit: string; patch?: Uint8Array; excerpt?: boolean }, signal?: AbortSignal): Promise<TestRun>
  /** Testers that can be reached now; at least 1. */
  testers(): Promise<number>
}

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

  const ask = async (input: Parameters<TestClient['run']>[0], signal: AbortSignal | undefined): Promise<TestRun> => {
    const id = correlationId()
    work.name(id, input.patch === undefined ? input.commit : `${input.commit} patched`)
    const options: CallOptions = { timeoutMs, correlationId: id, ...(signal === undefined ? {} : { signal }) }
    const { commit, patch, excerpt } = input
    try {
      const request = {
        commit,
        ...(patch === undefined ? {} : { patch: toBase64(patch) }),
        ...(excerpt ? { excerpt } : {}),
      }
      const done = await turns.run(id, () => peer.call(runTests, request, options))
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
    run: (input, signal) => patiently(() => ask(input, signal), signal),
    async testers() {
      const candidates = await peer.find({ capability: runTests.name })
      return Math.max(1, candidates.filter(({ status, usable }) => usable || status === 'online').length)
    },
  }
}
