import { describe, expect, it } from 'vitest'
import type { LogLine } from './contracts.ts'
import { judge } from './judge.ts'

/** What a run without a fault leaves: one task of each kind of effects, seen by its owner and by who ran it. */
const owner: LogLine[] = [
  { at: 'submitted', id: 'a-1', effects: 'none' },
  { at: 'acknowledged', task: 'task_1' },
  { at: 'handed over', id: 'a-1', effects: 'none', task: 'task_1', acknowledged: true },
  { at: 'submitted', id: 'a-2', effects: 'once' },
  { at: 'handed over', id: 'a-2', effects: 'once', task: 'task_2', acknowledged: false },
  { at: 'acknowledged', task: 'task_2' },
  { at: 'ended', task: 'task_1', code: 'OK' },
  { at: 'ended', task: 'task_2', code: 'OK' },
  { at: 'submitted', id: 'a-3', effects: 'once' },
  { at: 'refused', id: 'a-3', code: 'BUSY' },
]
const provider: LogLine[] = [
  { at: 'started', id: 'a-1', effects: 'none' },
  { at: 'started', id: 'a-1', effects: 'none' },
  { at: 'started', id: 'a-2', effects: 'once' },
]
const without = (fits: (line: LogLine) => boolean) => owner.filter((line) => !fits(line))

describe('the judge of a chaos run', () => {
  it('finds nothing where nothing is broken, and counts', () => {
    expect(judge([owner, provider])).toEqual({
      submitted: 3,
      refused: 1,
      acknowledged: 2,
      started: 3,
      ends: { OK: 2 },
      broken: [],
    })
  })

  it.each<[string, LogLine[][], string]>([
    [
      'an acknowledged task without an end',
      [without((line) => line.at === 'ended' && line.task === 'task_2'), provider],
      'task_2 was acknowledged and never ended',
    ],
    [
      'an acknowledged task that its provider does not know',
      [
        [
          ...without(({ at }) => at === 'ended'),
          { at: 'ended', task: 'task_1', code: 'TASK_NOT_FOUND' },
          { at: 'ended', task: 'task_2', code: 'OK' },
        ],
        provider,
      ],
      'task_1 was acknowledged, and is lost',
    ],
    [
      'two ends of one task',
      [[...owner, { at: 'ended', task: 'task_1', code: 'CANCELLED' }], provider],
      'task_1 was told to have ended with OK and CANCELLED',
    ],
    [
      'work with effects once that was started by two agents',
      [owner, provider, [{ at: 'started', id: 'a-2', effects: 'once' }]],
      'a-2 (once) was started 2 times',
    ],
    [
      'work that nobody has submitted',
      [owner, [...provider, { at: 'started', id: 'b-9', effects: 'none' }]],
      'b-9 was started, and nobody has submitted it',
    ],
  ])('finds %s', (_, logs, what) => {
    expect(judge(logs).broken).toEqual([what])
  })
})
