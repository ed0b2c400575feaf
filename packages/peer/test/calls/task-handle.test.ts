import { capability, HermesError } from '@hermes-peer/protocol'
import { manualClock, seededRandom } from '@hermes-peer/testkit'
import { expect, it } from 'vitest'
import * as z from 'zod'
import { createTaskHandle, type TaskHandleOptions } from '../../src/calls/tasks/task-handle.ts'
import { DEFAULTS } from '../../src/defaults.ts'

const contract = capability('fix', {
  description: 'Fixes.',
  input: z.object({}),
  output: z.object({ done: z.boolean() }),
})
const END = { n: 1, at: 0, type: 'end', state: 'completed', message_type: 'response' } as const

it('follows a task over a way there that is closed for a while, whatever closes it', async () => {
  const clock = manualClock()
  const task = {
    taskId: 'task_AAAAAAAAAAAAAAAA',
    agentId: 'coder',
    capability: 'fix',
    traceId: '0'.repeat(32),
    until: Number.MAX_SAFE_INTEGER,
    acknowledged: true,
    rejected: undefined,
  }
  // As a neighbour refuses that does not know yet that we have restarted; then as one that does not trust us for now.
  const refusals = ['HANDSHAKE_REFUSED', 'NOT_ALLOWED'] as const
  let tries = 0
  const handle = createTaskHandle({
    contract,
    task,
    clock,
    random: seededRandom(1),
    tunables: DEFAULTS,
    life: new AbortController().signal,
    telemetry: { emit: () => undefined },
    own: {},
    submitter: {},
    async reach() {
      const refusal = refusals[tries++]
      if (refusal) throw new HermesError(refusal)
      return {}
    },
    ask: async () => ({
      task_id: task.taskId,
      state: 'completed',
      events: [{ ...END, payload: { status: 'completed', output: { done: true } } }],
    }),
  } as unknown as TaskHandleOptions)
  expect(await clock.timeline.runUntil(handle.result())).toEqual({ done: true })
  expect(tries).toBe(3)
})
