import { HermesError } from '@hermes-peer/protocol'
import type { ManualClock } from '@hermes-peer/testkit'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Breaker, CallEnd } from '../../src/routing/breaker.ts'
import { verdictOf, verdictOfLoss } from '../../src/routing/verdict.ts'
import { breaking, follow, type Step, steps } from './breaker-model.ts'

function end(breaker: Breaker, how: CallEnd, times = 1, agentId = 'a', capability = 'work'): void {
  for (let i = 0; i < times; i++) {
    const tell = breaker.begin(agentId, capability)
    if (!tell) throw new Error(`${agentId} was not let through at ${i}`)
    tell(how)
  }
}
const FAILED: CallEnd = { verdict: 'failed', code: 'HANDLER_ERROR' }
const WELL: CallEnd = { verdict: 'well' }

describe('the breaker', () => {
  it('opens at five failures in a row, for that capability of that agent only', () => {
    const { breaker, events } = breaking()
    end(breaker, FAILED, 4)
    end(breaker, WELL)
    end(breaker, FAILED, 4)
    expect(breaker.read('a', 'work')).toEqual({ state: 'closed' })
    end(breaker, FAILED)
    expect(breaker.read('a', 'work')).toMatchObject({ state: 'open', probeInMs: 10_000 })
    expect(breaker.begin('a', 'work')).toBeUndefined()
    expect(breaker.begin('a', 'other')).toBeDefined()
    expect(breaker.begin('b', 'work')).toBeDefined()
    expect(events).toMatchObject([
      { type: 'breaker.opened', agentId: 'a', capability: 'work', because: expect.stringContaining('5 failures') },
    ])
    expect(events[0]?.because).toContain('HANDLER_ERROR')
  })

  it('opens at half of twenty calls within 30 s, not at half of nineteen', () => {
    const { breaker } = breaking()
    for (let i = 0; i < 9; i++) {
      end(breaker, WELL)
      end(breaker, FAILED)
    }
    end(breaker, WELL)
    expect(breaker.read('a', 'work').state).toBe('closed')
    end(breaker, FAILED)
    expect(breaker.read('a', 'work')).toMatchObject({ state: 'open', because: expect.stringContaining('10 of 20') })
  })

  it('forgets what is older than 30 s', async () => {
    const { breaker, clock } = breaking()
    for (let i = 0; i < 9; i++) {
      end(breaker, WELL)
      end(breaker, FAILED)
    }
    await clock.timeline.advance('31s')
    for (let i = 0; i < 9; i++) {
      end(breaker, FAILED)
      end(breaker, WELL)
    }
    expect(breaker.read('a', 'work').state).toBe('closed')
  })

  it('lets exactly one call through after 10 s; what that one ends with decides', async () => {
    const { breaker, clock, events, closed } = breaking()
    end(breaker, FAILED, 5)
    await clock.timeline.advance(9999)
    expect(breaker.begin('a', 'work')).toBeUndefined()
    await clock.timeline.advance(1)
    const probe = breaker.begin('a', 'work')
    expect(probe).toBeDefined()
    for (let i = 0; i < 100; i++) expect(breaker.begin('a', 'work')).toBeUndefined()
    probe?.(FAILED)
    expect(breaker.read('a', 'work')).toMatchObject({ state: 'open', probeInMs: 10_000 })
    await clock.timeline.advance('10s')
    end(breaker, WELL)
    expect(breaker.read('a', 'work').state).toBe('closed')
    expect(closed).toEqual(['a#work'])
    expect(events.map(({ type }) => type)).toEqual([
      'breaker.opened',
      'breaker.probe',
      'breaker.opened',
      'breaker.probe',
      'breaker.closed',
    ])
    // Everything begins anew.
    end(breaker, FAILED, 4)
    expect(breaker.read('a', 'work').state).toBe('closed')
  })

  it('a probe that its caller cancels gives the next call its turn', async () => {
    const { breaker, clock } = breaking()
    end(breaker, FAILED, 5)
    await clock.timeline.advance('10s')
    end(breaker, { verdict: 'nothing' })
    expect(breaker.read('a', 'work')).toMatchObject({ state: 'half-open', probing: false })
    end(breaker, WELL)
    expect(breaker.read('a', 'work').state).toBe('closed')
  })

  it('what began before it opened changes nothing, however it ends and however late', async () => {
    const { breaker, clock } = breaking()
    const old = [1, 2, 3].map(() => breaker.begin('a', 'work'))
    end(breaker, FAILED, 5)
    old[0]?.(WELL)
    expect(breaker.read('a', 'work').state).toBe('open')
    await clock.timeline.advance('10s')
    old[1]?.(WELL)
    const probe = breaker.begin('a', 'work')
    old[2]?.(FAILED)
    expect(breaker.read('a', 'work')).toMatchObject({ state: 'half-open', probing: true })
    probe?.(WELL)
    expect(breaker.read('a', 'work').state).toBe('closed')
  })

  it('counts all calls that one lost link took with it as one failure', () => {
    const { breaker } = breaking()
    end(breaker, { ...FAILED, event: 'link1' }, 50)
    end(breaker, { ...FAILED, event: 'link2' }, 50)
    expect(breaker.read('a', 'work').state).toBe('closed')
    for (const event of ['link3', 'link4', 'link5']) end(breaker, { ...FAILED, event })
    expect(breaker.read('a', 'work').state).toBe('open')
  })

  it('does what the rule says, whatever happens in whatever order', async () => {
    let opened = 0
    let probes = 0
    await fc.assert(
      fc.asyncProperty(steps, async (list) => {
        const seen = await follow(list)
        opened += seen.opened
        probes += seen.probes
      }),
      { numRuns: 300 },
    )
    // The runs have really been where it matters.
    expect(opened).toBeGreaterThan(100)
    expect(probes).toBeGreaterThan(30)
  })
})

describe('the check of the breaker catches', () => {
  const caught = async (make: (clock: ManualClock) => Breaker) => {
    const found = await fc.check(
      fc.asyncProperty(steps, async (list: Step[]) => {
        await follow(list, make)
      }),
      { numRuns: 1000, endOnFailure: true },
    )
    return found.failed
  }

  it('two probes at once', async () => {
    const failed = await caught((clock) => {
      const { breaker } = breaking({}, clock)
      return {
        read: breaker.read,
        begin: (agentId, capability) =>
          breaker.begin(agentId, capability) ??
          (breaker.read(agentId, capability).state === 'half-open' ? () => undefined : undefined),
      }
    })
    expect(failed).toBe(true)
  })

  it.each([
    ['one failure too many', { breakerRow: 6 }],
    ['a probe too early', { breakerOpenMs: 9_990 }],
    ['a probe too late', { breakerOpenMs: 10_001 }],
  ])('%s', async (_, tuning) => {
    expect(await caught((clock) => breaking(tuning, clock).breaker)).toBe(true)
  })

  it('a late success of an earlier call that closes it', async () => {
    const failed = await caught((clock) => {
      let { breaker } = breaking({}, clock)
      return {
        read: (...pair) => breaker.read(...pair),
        begin(agentId, capability) {
          const tell = breaker.begin(agentId, capability)
          return (
            tell &&
            ((how) => {
              if (how.verdict === 'well' && breaker.read(agentId, capability).state === 'open')
                breaker = breaking({}, clock).breaker
              tell(how)
            })
          )
        },
      }
    })
    expect(failed).toBe(true)
  })
})

describe('what counts as a failure', () => {
  const verdict = (code: string, more: object = {}) => verdictOf(new HermesError(code as never, more))

  it.each(['HANDLER_ERROR', 'INVALID_RESULT', 'TIMEOUT', 'INTERNAL', 'OUTCOME_UNKNOWN'])('%s does', (code) => {
    expect(verdict(code)).toBe('failed')
  })

  it.each([
    'CANCELLED',
    'CALLER_GONE',
    'CALL_CYCLE',
    'VALIDATION_ERROR',
    'BUSY',
    'DRAINING',
    'NOT_ALLOWED',
    'CAPABILITY_NOT_FOUND',
    'PAYLOAD_TOO_LARGE',
    'PEER_RESTARTED',
    'QUEUE_FULL',
    'RESULT_GONE',
  ])('%s does not', (code) => {
    expect(verdict(code)).toBe('nothing')
  })

  it('a declared error is an answer', () => {
    expect(verdict('HANDLER_ERROR', { declared: { name: 'TOO_LARGE', data: {} } })).toBe('well')
  })

  it('a lost link does, unless the other side closed it in good order', () => {
    expect(verdictOfLoss(new HermesError('PEER_UNREACHABLE'))).toBe('failed')
    expect(verdictOfLoss(new HermesError('PEER_UNREACHABLE', { details: { orderly: true } }))).toBe('nothing')
  })
})
