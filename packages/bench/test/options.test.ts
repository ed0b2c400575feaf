import { describe, expect, it } from 'vitest'
import { readOptions } from '../src/options.ts'

describe('the command line', () => {
  it('measures everything in three rounds unless told otherwise', () => {
    const options = readOptions([])
    expect(options.rounds).toBe(3)
    expect(options.rows.map((row) => row.name)).toEqual(['floor', 'hermes-peer'])
    expect(options.scenarios.size).toBe(9)
  })

  it('takes rows and measurements by name', () => {
    const options = readOptions(['--only', 'floor, latency', '--rounds', '1'])
    expect(options.rows.map((row) => row.name)).toEqual(['floor'])
    expect([...options.scenarios]).toEqual(['latency'])
  })

  it.each([
    [['--rounds', '0'], '--rounds is a whole number from 1 to 100, not 0'],
    [['--rounds', 'two'], '--rounds is a whole number from 1 to 100, not two'],
    [['--only', 'latency,nats'], '--only does not know nats'],
  ])('refuses %j', (argv, message) => {
    expect(() => readOptions(argv)).toThrow(message)
  })
})
