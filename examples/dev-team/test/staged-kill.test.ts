import { describe, expect, it } from 'vitest'
import type { AgentEvent } from '../src/events.ts'
import { stageKill, stagePmKill } from '../src/team/staged-kill.ts'

const sample = { commits: ['c0', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7'], culprit: 'c4' }
const round: AgentEvent = { type: 'search.round', round: 1, suspects: 7, commits: ['c1', 'c3', 'c6'] }
const started = (commit: string): AgentEvent => ({ type: 'run.started', commit, patched: false })

describe('the staged kill', () => {
  it('takes the tester whose run the search cannot do without, once', () => {
    const kill = stageKill(sample)
    expect(kill.observe('pm', round)).toBeUndefined()
    expect(kill.observe('a', started('c6'))).toBeUndefined()
    expect(kill.observe('b', started('c1'))).toBeUndefined()
    expect(kill.observe('c', started('c3'))).toEqual({ agentId: 'c', commit: 'c3' })
    expect(kill.observe('a', started('c3'))).toBeUndefined()
  })

  it('does not depend on which of two processes is heard first', () => {
    const kill = stageKill(sample)
    expect(kill.observe('c', started('c3'))).toBeUndefined()
    expect(kill.observe('pm', round)).toEqual({ agentId: 'c', commit: 'c3' })
  })

  it('kills nobody whose run has ended already', () => {
    const kill = stageKill(sample)
    kill.observe('c', started('c3'))
    kill.observe('c', { type: 'run.ended', commit: 'c3', patched: false, passed: true, ms: 1 })
    expect(kill.observe('pm', round)).toBeUndefined()
  })
})

describe('the staged kill of pm', () => {
  it('comes in the middle of the repair, once', () => {
    const progress: AgentEvent = { type: 'repair.progress', by: 'coder', fraction: 0.2, note: '' }
    const kill = stagePmKill()
    expect(kill.observe('pm', round)).toBe(false)
    expect(kill.observe('coder', progress)).toBe(false)
    expect(kill.observe('pm', progress)).toBe(true)
    expect(kill.observe('pm', progress)).toBe(false)
  })
})
