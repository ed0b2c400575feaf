import type { Peer } from 'hermes-peer'
import { repair, review, runTests } from '../contracts.ts'
import { failure } from '../failures.ts'

export interface Team {
  readonly testers: number
  readonly coder: string
  readonly reviewer: string
}

/** Longest wait for a team that has only just been started, ms. */
const FIND_LIMIT_MS = 60_000
/** A team with somebody to ask, but fewer testers than hoped for, is waited for no longer than this, ms. */
const PATIENCE_MS = 20_000
/** The directory is asked again this often even when it reports no change, ms. */
const ASK_EVERY_MS = 200

/** Finds who can test, repair and review, by capability. Fails with `OTHER` when somebody is missing. */
export async function findTeam(
  peer: Peer,
  { testers: hoped, signal }: { testers: number; signal: AbortSignal },
): Promise<Team> {
  const startedAt = performance.now()
  const changes = changeNotice(peer)
  try {
    for (;;) {
      signal.throwIfAborted()
      const [testers, coders, reviewers] = await Promise.all(
        [runTests, repair, review].map(({ name }) => able(peer, name, signal)),
      )
      const waited = performance.now() - startedAt
      const coder = coders?.[0]
      const reviewer = reviewers?.[0]
      const count = testers?.length ?? 0
      if (coder !== undefined && reviewer !== undefined && (count >= hoped || (count > 0 && waited > PATIENCE_MS))) {
        return { testers: count, coder, reviewer }
      }
      if (waited > FIND_LIMIT_MS) {
        const missing = [count === 0 && 'a tester', !coder && 'a coder', !reviewer && 'a reviewer'].filter(Boolean)
        throw failure(
          'OTHER',
          `Nobody was found who is ${missing.join(', or ')}.`,
          'See above whether an agent ended; try again on a less busy machine.',
        )
      }
      await changes.next(ASK_EVERY_MS)
    }
  } finally {
    changes.stop()
  }
}

async function able(peer: Peer, capability: string, signal: AbortSignal): Promise<string[]> {
  try {
    const candidates = await peer.find({ capability }, { timeoutMs: 2_000, signal })
    return candidates.filter(({ usable }) => usable).map(({ agentId }) => agentId)
  } catch {
    // Asked again until the time is over; a directory that is still empty is no failure.
    signal.throwIfAborted()
    return []
  }
}

/** Waits for a change in the directory, or a little while. */
function changeNotice(peer: Peer): { next(ms: number): Promise<void>; stop(): void } {
  let wake: (() => void) | undefined
  const stops = [runTests, repair, review].map(({ name }) => peer.watch({ capability: name }, () => wake?.()))
  return {
    next: (ms) =>
      new Promise((resolve) => {
        const timer = setTimeout(resolve, ms)
        wake = () => {
          clearTimeout(timer)
          resolve()
        }
      }),
    stop: () => {
      for (const stop of stops) stop()
    },
  }
}
