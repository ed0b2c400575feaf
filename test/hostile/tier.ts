/** How much is done: `test` in every run, `ci` in the pipeline, `long` with the figures as they were written down. */
export const tier = process.env.HERMES_TEST_TIER ?? 'test'

/** The count of the tier that runs. */
export function byTier(counts: { test: number; ci: number; long: number }): number {
  return tier === 'long' ? counts.long : tier === 'ci' ? counts.ci : counts.test
}

/** How long a test may take that does more in a longer tier, ms: a busy machine included. */
export const PATIENCE_MS = byTier({ test: 60_000, ci: 300_000, long: 1_800_000 })
