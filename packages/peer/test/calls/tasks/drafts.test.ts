import { encodePayload, HermesError } from '@hermes-peer/protocol'
import { manualClock, seededRandom } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import type { PendingAttempt } from '../../../src/calls/pending.ts'
import { createDrafts } from '../../../src/calls/tasks/drafts.ts'
import { createOwnTasks, type OwnTask } from '../../../src/calls/tasks/own-tasks.ts'
import type { DurableDraft } from '../../../src/calls/tasks/stored-draft.ts'
import { createSubmitter } from '../../../src/calls/tasks/submitter.ts'
import { DEFAULTS } from '../../../src/defaults.ts'
import type { Incoming } from '../../../src/delivery/inbox.ts'
import type { JournalChange } from '../../../src/journal/journal.ts'
import { createMemoryJournal } from '../../../src/journal/memory-journal.ts'
import { NO_POLICY } from '../../../src/policy/guard.ts'

const JSON_TYPE = 'application/json'
const LINK = { remote: { agentId: 'desk', epoch: 1 } }
const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'OK',
    (error: unknown) => HermesError.from(error).code,
  )

/** The caller's side of tasks over a link that writes nothing. */
async function caller() {
  const clock = manualClock()
  const random = seededRandom(1)
  const journal = createMemoryJournal()
  await journal.open()
  const posted: string[] = []
  const attempts: PendingAttempt[] = []
  const on = { linked: true, failing: false, unsendable: undefined as HermesError | undefined }
  const guarded = {
    ...journal,
    entries: journal.entries.bind(journal),
    commit: (changes: readonly JournalChange[]) =>
      on.failing ? Promise.reject(new HermesError('STORAGE_FAILED')) : journal.commit(changes),
  }
  const common = { clock, random, tunables: DEFAULTS, telemetry: { emit: () => undefined } as never }
  const reach = () => (on.linked ? Promise.resolve(LINK as never) : new Promise<never>(() => undefined))
  const own = createOwnTasks({ journal: guarded as never, most: 10, failed: () => undefined })
  const submitter = createSubmitter({
    ...common,
    drafts: {
      add: (draft, beside) => drafts.add(draft, beside),
      sent: (id) => drafts.sent(id),
      takeBack: (id, change) => drafts.takeBack(id, change),
    },
    own,
    router: {} as never,
    policy: NO_POLICY.call,
    ledger: { begin: () => undefined, end: () => undefined } as never,
    reach,
  })
  const drafts = createDrafts({
    ...common,
    journal: guarded as never,
    outbox: {
      post: (
        _: unknown,
        draft: DurableDraft,
        ends: { written(how: object): void; failed(error: HermesError): void },
      ) => {
        posted.push(`${draft.type} ${draft.messageId}`)
        if (on.unsendable) ends.failed(on.unsendable)
        else ends.written({ leaf: '0' })
        return () => undefined
      },
    } as never,
    pending: { add: (attempt: PendingAttempt) => attempts.push(attempt), remove: () => undefined } as never,
    links: { get: () => (on.linked ? LINK : undefined) } as never,
    ends: submitter.ends,
    reach,
  })
  const keys = async () => {
    const found: string[] = []
    for await (const [key] of journal.entries('outbox')) found.push(key)
    return found
  }
  return { clock, journal, own, submitter, drafts, posted, attempts, on, keys }
}

const ID = '0123456789abcdef'
const draft: DurableDraft = {
  agentId: 'desk',
  messageId: `msg_${ID}`,
  type: 'submit',
  capability: 'index',
  payload: encodePayload(JSON_TYPE, { input: 1 }),
  correlationId: undefined,
  traceId: '1'.repeat(32),
  priority: 3,
  path: [],
  timeoutMs: 1000,
  expiresAt: Number.MAX_SAFE_INTEGER,
}
const newTask = (): OwnTask => ({
  taskId: `task_${ID}`,
  agentId: 'desk',
  capability: 'index',
  traceId: draft.traceId,
  until: Number.MAX_SAFE_INTEGER,
  acknowledged: false,
  rejected: undefined,
})
const answerOf = (type: 'response' | 'error', payload: unknown): Incoming =>
  ({
    header: { message_type: type, content_type: JSON_TYPE },
    payload: encodePayload(JSON_TYPE, payload as never),
  }) as never

describe('a draft', () => {
  it('is not sent before it is stored, whatever happens meanwhile', async () => {
    const { drafts, posted, on } = await caller()
    on.failing = true
    const adding = codeOf(drafts.add(draft))
    drafts.linked('desk')
    expect([await adding, posted]).toEqual(['STORAGE_FAILED', []])
    on.failing = false
    await drafts.add(draft)
    expect(posted).toEqual([`submit ${draft.messageId}`])
  })

  it('that is too large is refused before it is stored, or by the first link that does not take it', async () => {
    const { drafts, own, submitter, on, keys, clock, posted } = await caller()
    expect(await codeOf(drafts.add({ ...draft, payload: new Uint8Array(1024 * 1024) }))).toBe('PAYLOAD_TOO_LARGE')
    expect(await keys()).toEqual([])
    on.unsendable = new HermesError('PAYLOAD_TOO_LARGE')
    const emitting = submitter.emit({ ...draft, type: 'event' }, new AbortController().signal)
    expect(await codeOf(emitting)).toBe('PAYLOAD_TOO_LARGE')
    const task = newTask()
    await drafts.add(draft, [own.add(task)])
    await clock.timeline.advance(60_000)
    expect([task.rejected?.code, posted.length]).toEqual(['PAYLOAD_TOO_LARGE', 2])
    expect(await keys()).toEqual([`task#${task.taskId}`])
  })

  it('goes on where its link could not carry it', async () => {
    const { drafts, on, clock, posted } = await caller()
    on.unsendable = new HermesError('STOPPED')
    await drafts.add(draft)
    on.unsendable = undefined
    await clock.timeline.advance(DEFAULTS.resendMs)
    expect(posted).toHaveLength(2)
  })
})

describe('a task that is taken back', () => {
  it('before it was sent is cancelled once that is stored, and sent on when it cannot be', async () => {
    const { drafts, own, submitter, on, keys, posted } = await caller()
    on.linked = false
    const task = newTask()
    await drafts.add(draft, [own.add(task)])
    on.failing = true
    const failed = [codeOf(submitter.withdraw(task)), codeOf(submitter.withdraw(task))]
    expect(await Promise.all(failed)).toEqual(['STORAGE_FAILED', 'STORAGE_FAILED'])
    expect(task.rejected).toBeUndefined()
    on.linked = true
    drafts.linked('desk')
    expect(posted).toEqual([`submit ${draft.messageId}`])

    const other = await caller()
    other.on.linked = false
    const second = newTask()
    await other.drafts.add(draft, [other.own.add(second)])
    expect(await other.submitter.withdraw(second)).toBe('cancelled')
    expect(await other.keys()).toEqual([`task#${second.taskId}`])
    const later = createOwnTasks({ journal: other.journal, most: 10, failed: () => undefined })
    await later.load()
    expect(later.get(second.taskId)?.rejected?.code).toBe('CANCELLED')
    expect(await keys()).toEqual([`draft#${draft.messageId}`, `task#${task.taskId}`])
  })

  it('on its way leaves a cancel in its place, in one write', async () => {
    const { drafts, own, submitter, on, keys, posted, clock } = await caller()
    const task = newTask()
    await drafts.add(draft, [own.add(task)])
    on.failing = true
    expect(await codeOf(submitter.withdraw(task))).toBe('STORAGE_FAILED')
    on.failing = false
    expect(await submitter.withdraw(task)).toBeUndefined()
    await clock.timeline.advance(DEFAULTS.resendMs)
    expect(posted.map((what) => what.split(' ')[0])).toEqual(['submit', 'submit', 'request', 'request'])
    expect((await keys()).filter((key) => key.includes(ID))).toEqual([`task#${task.taskId}`])
  })

  it('is not cancelled forever by an agent that answers nonsense', async () => {
    for (const nonsense of [
      { no: 'response' },
      { output: null, status: 'completed' },
      { output: { state: 'x' }, status: 'completed' },
    ]) {
      const { drafts, own, submitter, attempts, posted, clock, keys } = await caller()
      const task = newTask()
      await drafts.add(draft, [own.add(task)])
      await submitter.withdraw(task)
      attempts.at(-1)?.answered(answerOf('response', nonsense))
      await clock.timeline.advance(60_000)
      expect(posted).toHaveLength(2)
      expect(task).toMatchObject({ acknowledged: false, rejected: undefined })
      expect(await keys()).toEqual([`task#${task.taskId}`])
    }
  })
})

describe('a refusal that says as much as a payload can hold', () => {
  it('is taken in like any other', async () => {
    const { drafts, own, attempts, posted, clock, keys } = await caller()
    const task = newTask()
    await drafts.add(draft, [own.add(task)])
    let deep: unknown = 1
    for (let level = 0; level < 30; level++) deep = [deep]
    const refusal = { error_code: 'NOT_ALLOWED', error_message: 'no', retryable: false, details: { deep } }
    attempts[0]?.answered(answerOf('error', refusal))
    await clock.timeline.advance(60_000)
    expect([task.rejected?.code, posted.length]).toEqual(['NOT_ALLOWED', 1])
    expect(await keys()).toEqual([`task#${task.taskId}`])
  })
})
