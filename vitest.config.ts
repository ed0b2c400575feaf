import { defaultServerConditions } from 'vite'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

// The packages run from source: nothing has to be built before a test.
const conditions = ['@hermes-peer/source', ...defaultServerConditions]
const resolution = { resolve: { conditions }, ssr: { resolve: { conditions } } }

/** They replace modules, which the next file in the same process would see. */
const REPLACES_MODULES = ['test/**/planted-faults.test.ts']

/**
 * What takes longest, begun first so that nothing runs alone at the end: what waits for real clocks, disks and processes in
 * turn with what computes.
 */
const LONGEST = [
  '/processes/processes',
  '/simulation/durable/durable',
  '/processes/cycles',
  '/processes/shares',
  '/simulation/simulation',
  '/journal/kill',
  '/dev-team/test/interruption',
  '/processes/drain',
  '/dev-team/test/own-repository',
  '/journal/folder',
  '/dev-team/',
  '/hostile/',
]

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const found = LONGEST.findIndex((part) => moduleId.includes(part))
      return found === -1 ? LONGEST.length : found
    }
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b))
  }
}

export default defineConfig({
  test: {
    pool: 'forks',
    // One more than the cores of a small machine: a third of the time goes by in waiting for real clocks and processes.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    // One line per file; the tests of a file only when one fails, or takes longer than this.
    reporters: ['default'],
    slowTestThreshold: 10_000,
    projects: [
      {
        ...resolution,
        test: {
          name: 'shared',
          // Loading the network library anew for each file is a quarter of the time of a whole run.
          isolate: false,
          include: ['packages/*/test/**/*.test.ts', 'examples/*/test/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: REPLACES_MODULES,
          globalSetup: 'test/programs/setup.ts',
          testTimeout: 30_000,
          hookTimeout: 30_000,
        },
      },
      {
        ...resolution,
        test: { name: 'isolated', include: REPLACES_MODULES, testTimeout: 30_000, hookTimeout: 30_000 },
      },
    ],
  },
})
