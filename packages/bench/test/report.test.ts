import { describe, expect, it } from 'vitest'
import { createSamples } from '../src/report/samples.ts'
import { renderTable } from '../src/report/table.ts'
import { ROWS } from '../src/rows.ts'

function measured(hermes: { p50Us: number; perSecond: number; failed: number }) {
  const samples = createSamples()
  for (const p50Us of [90, 100, 200]) samples.take('floor', 'latency', { p50Us })
  samples.take('floor', 'throughput', { perSecond: 1_000 })
  samples.take('hermes-peer', 'latency', { p50Us: hermes.p50Us })
  samples.take('hermes-peer', 'throughput', { perSecond: hermes.perSecond })
  samples.take('hermes-peer', 'failover', { failed: hermes.failed })
  return renderTable(ROWS, samples)
}

const line = (table: string, title: string) => table.split('\n').find((one) => one.includes(title)) ?? ''

describe('the table', () => {
  it('compares medians with the floor and says that an aim is met', () => {
    const table = measured({ p50Us: 160, perSecond: 600, failed: 0 })
    expect(line(table, 'p50')).toMatch(/\b100 \|\s+160 \|\s+1\.60 × \|\s+≤ 1\.6 × \|\s+met \|/)
    expect(line(table, '64 in flight')).toMatch(/0\.60 × \|\s+≥ 0\.6 × \|\s+met \|/)
    expect(line(table, 'failed calls')).toMatch(/– \|\s+0 \|\s+\|\s+≤ 0 \|\s+met \|/)
  })

  it('says that an aim is not met, at either side of it', () => {
    const table = measured({ p50Us: 161, perSecond: 599, failed: 1 })
    for (const title of ['p50', '64 in flight', 'failed calls']) expect(line(table, title)).toContain('not met')
  })

  it('leaves out what was not measured', () => {
    expect(measured({ p50Us: 160, perSecond: 600, failed: 0 })).not.toContain('1,000,000 bytes')
  })
})

describe('samples', () => {
  it('drop figures that the system could not tell, and count equal failures', () => {
    const samples = createSamples()
    samples.take('floor', 'idle', { rssMb: Number.NaN })
    samples.fail('floor', 'big', new Error('short'))
    samples.fail('floor', 'big', new Error('short'))
    expect(samples.median('floor', 'idle.rssMb')).toBeUndefined()
    expect(samples.failures()).toEqual(['floor, big: short (2 times)'])
  })
})
