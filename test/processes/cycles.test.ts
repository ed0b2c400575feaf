import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { program } from '../programs/program.ts'

const median = (numbers: readonly number[]) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1] as number

describe('two peers in one process, started and stopped 100 times', () => {
  test('leave no handle, timer or listener, and the heap stays within 5 %', { timeout: 170_000 }, async () => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--expose-gc', await program('test/processes/cycles')],
      { maxBuffer: 1 << 24 },
    )
    const { heap, left, warnings } = JSON.parse(stdout) as {
      heap: { early: number[]; late: number[] }
      left: string[]
      warnings: string[]
    }
    expect(left).toEqual([])
    expect(warnings).toEqual([])
    // Cycles 40 to 50 against the last ten.
    expect([heap.early.length, heap.late.length]).toEqual([10, 10])
    expect(median(heap.late) / median(heap.early)).toBeLessThan(1.05)
  })
})
