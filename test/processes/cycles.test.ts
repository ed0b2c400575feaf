import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'
import { bundle } from './bundle.ts'

const programs = mkdtempSync(join(tmpdir(), 'hermes-cycles-program-'))
afterAll(() => rmSync(programs, { recursive: true, force: true }))
const median = (numbers: readonly number[]) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1] as number

// Half a second of processor time each: the whole hundred runs in the tiers with larger counts.
const cycles = process.env.HERMES_TEST_TIER === undefined ? 40 : 100

describe(`two peers in one process, started and stopped ${cycles} times`, () => {
  test('leave no handle, timer or listener, and the heap stays within 5 %', { timeout: 170_000 }, async () => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--expose-gc', await bundle('cycles.ts', programs), `${cycles}`],
      { maxBuffer: 1 << 24 },
    )
    const { heap, left, warnings } = JSON.parse(stdout) as {
      heap: number[]
      left: string[]
      warnings: string[]
    }
    expect(left).toEqual([])
    expect(warnings).toEqual([])
    // Cycles 40 to 50 against 90 to 100; of the smaller count 20 to 30 against 30 to 40.
    const window = cycles === 100 ? ([40, 50] as const) : ([20, 30] as const)
    const [early, late] = [median(heap.slice(...window)), median(heap.slice(-10))]
    expect(late / early).toBeLessThan(1.05)
  })
})
