import { defaultServerConditions } from 'vite'
import { defineConfig } from 'vitest/config'

// The packages run from source: nothing has to be built before a test.
const conditions = ['@hermes-peer/source', ...defaultServerConditions]

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ['packages/*/test/**/*.test.ts', 'examples/*/test/**/*.test.ts', 'test/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 2,
    // One line per file; the tests of a file only when one fails, or takes longer than this.
    reporters: ['default'],
    slowTestThreshold: 10_000,
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
})
