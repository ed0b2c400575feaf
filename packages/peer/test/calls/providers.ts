import { capability, type HermesError, isHermesError } from '@hermes-peer/protocol'
import * as z from 'zod'
import type { Peer } from '../../src/api.ts'
import { type Got, type RawPeer, startRaw } from './raw.ts'
import { eventsOf, realPeer } from './team.ts'

type Effects = 'none' | 'idempotent' | 'once'
const EFFECTS: readonly Effects[] = ['none', 'idempotent', 'once']

/** What a provider does with a request. */
export type Behaviour = (got: Got, raw: RawPeer) => void

/** Raw providers that serve a whole file: they offer the same work under each kind of effects. */
export interface Cast {
  /**
   * A fresh caller that knows just the providers that are given a behaviour. `asked` are the providers that got the work, in
   * order.
   */
  scene(
    behaviours: Readonly<Record<string, Behaviour>>,
    effects?: Effects,
    tuning?: object,
  ): Promise<{
    caller: Peer
    asked: string[]
    raws: Readonly<Record<string, RawPeer>>
    call(options?: object): ReturnType<Peer['request']>
    /** The error that a call ends with. */
    failure(options?: object): Promise<HermesError>
    events: ReturnType<typeof eventsOf>
  }>
  stop(): Promise<void>
}

export async function createCast(names: readonly string[]): Promise<Cast> {
  let behaviours: Readonly<Record<string, Behaviour>> = {}
  let asked: string[] = []
  let callers = 0
  const raws: Record<string, RawPeer> = {}
  await Promise.all(
    names.map(async (name) => {
      raws[name] = await startRaw(name, {
        offers: EFFECTS.map((effects) => ({ name: `work-${effects}`, effects })),
        onRequest: (got, raw) => {
          if (isWork(got)) asked.push(name)
          behaviours[name]?.(got, raw)
        },
      })
    }),
  )
  return {
    async scene(given, effects = 'none', tuning = {}) {
      behaviours = given
      asked = []
      const known = Object.keys(given)
      const backoff = { retryBackoffMs: 20, retryBackoffCapMs: 40 }
      const caller = await realPeer(`caller-${++callers}`, { knows: known, tuning: { ...backoff, ...tuning } })
      await Promise.all(
        known.map(async (name) => {
          await caller.connect((raws[name] as RawPeer).address)
          await caller.manifest(name)
        }),
      )
      const work = capability(`work-${effects}`, { description: 'Works.', input: z.any(), output: z.any(), effects })
      const call = (options: object = {}) => caller.request(work, 1, { timeoutMs: 5000, ...options })
      return {
        caller,
        asked,
        raws,
        call,
        failure: (options) => failureOf(call(options)),
        events: eventsOf(caller),
      }
    },
    async stop() {
      await Promise.all(Object.values(raws).map((raw) => raw.stop()))
    },
  }
}

export const isWork = (got: Got) => got.header.target_capability?.startsWith('work-') === true

async function failureOf(call: Promise<unknown>): Promise<HermesError> {
  try {
    await call
  } catch (error) {
    if (isHermesError(error)) return error
    throw error
  }
  throw new Error('it succeeded')
}

/** Answers with an error of that code. */
export const refuse =
  (code: string, more: object = {}): Behaviour =>
  (got, raw) =>
    raw.reply(got, 'error', {
      error_code: code,
      error_message: 'as the test says',
      error_source: 'receiver',
      retryable: true,
      ...more,
    })

export const succeed: Behaviour = (got, raw) => raw.reply(got, 'response', { output: 'ok', status: 'completed' })

/** Breaks every link to the caller instead of answering. */
export const vanish: Behaviour = (got, raw) => {
  for (const link of raw.links(got.header.sender.agent_id)) link.destroy(new Error('the link breaks') as never)
}
