import { afterEach, describe, expect, test, vi } from 'vitest'
import type { RunLog } from './checkers.ts'

/**
 * Runs seeds with a part of the runtime broken on purpose until a checker speaks, or the one that is wanted; returns the names
 * of those that did.
 */
async function caughtBy(seeds: number, wanted?: string): Promise<Set<string>> {
  const { runScenario } = await import('./scenario.ts')
  const names = new Set<string>()
  for (let seed = 1; seed <= seeds && (wanted === undefined ? names.size === 0 : !names.has(wanted)); seed++) {
    const { broken } = await runScenario({ seed })
    for (const what of broken) names.add(what.split(':')[0] as string)
  }
  return names
}

afterEach(() => {
  vi.doUnmock('../../packages/peer/src/delivery/window.ts')
  vi.doUnmock('../../packages/peer/src/delivery/dedup.ts')
  vi.doUnmock('../../packages/peer/src/calls/effects.ts')
  vi.doUnmock('../../packages/peer/src/call-spec.ts')
  vi.doUnmock('../../packages/peer/src/telemetry/balance.ts')
  vi.doUnmock('../../packages/protocol/src/envelope/seal.ts')
  vi.resetModules()
})

const peer = (path: string) => `../../packages/peer/src/${path}`

describe('each checker catches the fault it is there for', { timeout: 120_000 }, () => {
  test('a window that never gives up a gap', async () => {
    vi.doMock(peer('delivery/window.ts'), async (original) => {
      const real = await original<typeof import('../../packages/peer/src/delivery/window.ts')>()
      return {
        ...real,
        createWindow: (options: never) => real.createWindow({ ...(options as object), gapMs: 1e9 } as never),
      }
    })
    expect(await caughtBy(10)).toContain('gapsAreGivenUp')
  })

  test('a window that lets everything through as it comes', async () => {
    vi.doMock(peer('delivery/window.ts'), () => ({
      createWindow: (options: { start: number; admit(item: unknown): void }) => ({
        next: options.start,
        held: 0,
        offer(_sequence: number, _bytes: number, _ordered: boolean, item: unknown) {
          options.admit(item)
          return 'admitted'
        },
        skip: () => undefined,
        advance: () => undefined,
        heldAt: () => undefined,
        close: () => undefined,
      }),
    }))
    expect(await caughtBy(10, 'admissionOrder')).toContain('admissionOrder')
  })

  test('a memory that forgets what was started, behind such a window', async () => {
    vi.doMock(peer('delivery/window.ts'), () => ({
      createWindow: (options: { start: number; admit(item: unknown): void }) => ({
        next: options.start,
        held: 0,
        offer(_sequence: number, _bytes: number, _ordered: boolean, item: unknown) {
          options.admit(item)
          return 'admitted'
        },
        skip: () => undefined,
        advance: () => undefined,
        heldAt: () => undefined,
        close: () => undefined,
      }),
    }))
    vi.doMock(peer('delivery/dedup.ts'), async (original) => {
      const real = await original<typeof import('../../packages/peer/src/delivery/dedup.ts')>()
      return {
        ...real,
        createDedup: (options: Parameters<typeof real.createDedup>[0]) => {
          const dedup = real.createDedup(options)
          return Object.assign(Object.create(dedup), {
            find: () => undefined,
            begin: dedup.begin.bind(dedup),
            withdraw: dedup.withdraw.bind(dedup),
            finish: dedup.finish.bind(dedup),
            settle: dedup.settle.bind(dedup),
            refuse: dedup.refuse.bind(dedup),
            sweep: dedup.sweep.bind(dedup),
          })
        },
      }
    })
    const caught = await caughtBy(10)
    expect([...caught]).toEqual(expect.arrayContaining(['startedOnce']))
  })

  test('a caller that repeats elsewhere what must not be repeated', async () => {
    vi.doMock(peer('calls/effects.ts'), () => ({ stricter: () => 'none' }))
    expect(await caughtBy(20)).toContain('onceOverall')
  })

  test('a deadline that is kept too late', async () => {
    vi.doMock(peer('call-spec.ts'), async (original) => {
      const real = await original<typeof import('../../packages/peer/src/call-spec.ts')>()
      return {
        callSpec: (...args: Parameters<typeof real.callSpec>) => {
          const spec = real.callSpec(...args)
          return { ...spec, deadline: spec.deadline + 1_000 }
        },
      }
    })
    expect(await caughtBy(10)).toContain('endsInTime')
  })

  test('signatures that are not checked', async () => {
    vi.doMock('../../packages/protocol/src/envelope/seal.ts', async (original) => {
      const real = await original<typeof import('../../packages/protocol/src/envelope/seal.ts')>()
      return { ...real, verifyEnvelope: (frame: { header: Uint8Array }) => real.leafOf(frame.header) }
    })
    expect(await caughtBy(10)).toContain('nothingForged')
  })

  test('calls that are counted twice', async () => {
    vi.doMock(peer('telemetry/balance.ts'), async (original) => {
      const real = await original<typeof import('../../packages/peer/src/telemetry/balance.ts')>()
      return {
        createLedger: () => {
          const ledger = real.createLedger()
          const end = (well: boolean) => {
            ledger.end(well)
            ledger.end(well)
          }
          return { ...ledger, end }
        },
      }
    })
    expect(await caughtBy(3)).toContain('balanceHolds')
  })

  test('a result that no handler made', async () => {
    const { resultsAreReal } = await import('./checkers.ts')
    const calls = [{ id: 'a-1', from: 'a', at: 0, timeoutMs: 1, orphaned: false, endedAt: 1, code: 'OK', by: 'b' }]
    const log = (runs: { id: string; agentId: string }[]) => ({ calls, runs }) as unknown as RunLog
    expect(resultsAreReal(log([{ id: 'a-1', agentId: 'b' }]))).toEqual([])
    expect(resultsAreReal(log([]))).toEqual(['a-1 has a result of b, which never ran it'])
  })
})

describe('a failing seed', () => {
  test('is told with the command that replays it, and too little exercise is told too', async () => {
    const { summarise, tooLittle } = await import('./seeds.ts')
    const result = {
      seed: 77,
      hash: '',
      broken: ['endsInTime: a-1 has not ended'],
      calls: 1,
      codes: {},
      faults: { cut: 0 } as never,
      exercised: { failover: 0 } as never,
    }
    const summary = summarise([result])
    expect(summary.failures[0]).toContain('npm run simulate -- --seed 77')
    expect(tooLittle(summary)).toEqual(
      expect.arrayContaining([
        'fault cut hit in 0 % of seeds, at least 50 % are wanted',
        'failover: 0 times in 1 seeds, at least 1 are wanted',
      ]),
    )
  })
})
