import fc from 'fast-check'
import { isHermesError, type SigningKey, sha256, signingKey, utf8 } from '../../src/index.ts'

export const RUNS = { numRuns: 1000 }

/** For a planted fault: the first run that notices it is enough. */
export const UNTIL_NOTICED = { numRuns: 1000, endOnFailure: true }

const AGENTS = ['pm', 'coder', 'tester-a', 'tester-b', 'reviewer', 'billing/ledger', 'ops', 'scribe', 'judge'] as const

/** Nine agents, each with a key of its own. */
export const PEOPLE: ReadonlyMap<string, SigningKey> = new Map(
  AGENTS.map((agent) => [agent, signingKey(sha256(utf8(`key of ${agent}`)))]),
)

export const keyOf = (agent: string): SigningKey => PEOPLE.get(agent) as SigningKey

/** The agents in any order. */
export const people = fc.shuffledSubarray([...AGENTS], { minLength: AGENTS.length, maxLength: AGENTS.length })

/** 32 bytes, drawn as one number: cheaper than 32 draws, and as good where no bit has a meaning. */
export const hash: fc.Arbitrary<Uint8Array> = fc.nat().map((seed) => sha256(utf8(`${seed}`)))

/** The code of a refusal; `accepted` when there is none. Mistakes are thrown on. */
export function verdictOf(run: () => unknown): string {
  try {
    run()
    return 'accepted'
  } catch (error) {
    if (isHermesError(error)) return error.code
    throw error
  }
}
