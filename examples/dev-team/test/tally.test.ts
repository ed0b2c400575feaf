import { expect, it } from 'vitest'
import { createTally } from '../src/team/tally.ts'

const told = (calls: number, succeeded: number, failed = 0) =>
  ({ type: 'agent.balance', calls, succeeded, failed, cancelled: failed, failovers: 0 }) as const

it('a balance over all lives: what each told last, and what a kill has cut off', () => {
  const tally = createTally()
  tally.observe('pm', told(3, 1))
  tally.observe('coder', told(5, 4, 1))
  tally.observe('pm', told(4, 2))
  tally.observe('pm', { type: 'agent.restarted', agent: 'pm', life: 2 })
  tally.observe('pm', told(1, 0))
  tally.observe('pm', told(2, 2))
  expect(tally.balance()).toEqual({ calls: 11, succeeded: 8, failed: 1, cancelled: 1, cutOff: 2, failovers: 0 })
})
