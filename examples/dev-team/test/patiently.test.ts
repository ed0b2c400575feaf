import { HermesError } from 'hermes-peer'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { patiently } from '../src/agents/patiently.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Fails with the given codes in turn, then succeeds. */
const failing = (...codes: ConstructorParameters<typeof HermesError>[0][]) => {
  let calls = 0
  return {
    call: async (): Promise<string> => {
      const code = codes[calls++]
      if (code !== undefined) throw new HermesError(code)
      return 'done'
    },
    calls: () => calls,
  }
}

describe('a call for which nobody is free at once', () => {
  it('is made again while waiting may help', async () => {
    const { call, calls } = failing('BUSY', 'NO_CANDIDATE', 'RETRIES_EXHAUSTED')
    const result = patiently(call, undefined)
    await vi.runAllTimersAsync()
    expect(await result).toBe('done')
    expect(calls()).toBe(4)
  })

  it('is given up in the end, with the last error', async () => {
    const { call, calls } = failing(...Array.from({ length: 20 }, () => 'PEER_UNREACHABLE' as const))
    const result = expect(patiently(call, undefined)).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' })
    await vi.runAllTimersAsync()
    await result
    expect(calls()).toBe(6)
  })

  it.each(['HANDLER_ERROR', 'VALIDATION_ERROR', 'TIMEOUT', 'CANCELLED'] as const)(
    'is not made again after %s',
    async (code) => {
      const { call, calls } = failing(code)
      await expect(patiently(call, undefined)).rejects.toMatchObject({ code })
      expect(calls()).toBe(1)
    },
  )

  it('ends with the reason of a cancellation', async () => {
    const controller = new AbortController()
    const call = async (): Promise<never> => {
      controller.abort(new Error('stopped'))
      throw new HermesError('PEER_UNREACHABLE')
    }
    await expect(patiently(call, controller.signal)).rejects.toThrow('stopped')
  })
})
