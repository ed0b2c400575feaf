import { type Schema, Validator } from '@cfworker/json-schema'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Header } from '../../src/envelope/header-types.ts'
import { HermesError, isHermesError, toWireError } from '../../src/errors/hermes-error.ts'
import {
  readCancelPayload,
  readEventPayload,
  readHeartbeatPayload,
  readRequestPayload,
  readResponsePayload,
} from '../../src/payload/conventions.ts'
import { readEndPayload } from '../../src/payload/end.ts'
import {
  readAckPayload,
  readTaskAnswerInput,
  readTaskCancelInput,
  readTaskWatchInput,
  readTaskWatchOutput,
} from '../../src/payload/tasks.ts'
import { readToolCall } from '../../src/payload/tool-call.ts'
import type { JsonValue } from '../../src/payload/value.ts'
import {
  ACK_SCHEMA,
  CANCEL_SCHEMA,
  createSchemaGuard,
  END_SCHEMA,
  ENVELOPE_SCHEMA,
  ERROR_SCHEMA,
  EVENT_SCHEMA,
  HEARTBEAT_SCHEMA,
  lintEnvelopeView,
  MANIFEST_SCHEMA,
  REQUEST_SCHEMA,
  RESPONSE_SCHEMA,
  TASK_CANCEL_SCHEMA,
  TASK_INPUT_SCHEMA,
  TASK_NEWS_SCHEMA,
  TASK_WATCH_SCHEMA,
  TOOL_CALL_SCHEMA,
  toJsonView,
} from '../../src/schema/index.ts'

const all = {
  ENVELOPE_SCHEMA,
  REQUEST_SCHEMA,
  RESPONSE_SCHEMA,
  EVENT_SCHEMA,
  CANCEL_SCHEMA,
  HEARTBEAT_SCHEMA,
  ACK_SCHEMA,
  END_SCHEMA,
  TASK_WATCH_SCHEMA,
  TASK_NEWS_SCHEMA,
  TASK_INPUT_SCHEMA,
  TASK_CANCEL_SCHEMA,
  TOOL_CALL_SCHEMA,
  ERROR_SCHEMA,
  MANIFEST_SCHEMA,
}

const header: Header = {
  version: '1.0',
  network: 'office',
  message_id: 'msg_abcdefghij012345',
  correlation_id: undefined,
  trace_id: '0af7651916cd43dd8448eb211c80319c',
  span_id: 'b7ad6b7169203331',
  message_type: 'request',
  sender: { agent_id: 'billing/ledger', key: `sha256:${'0'.repeat(64)}` },
  recipient: { capability: 'code_review@2', via: 'pm' },
  target_capability: 'code_review@2',
  call_type: 'request',
  session_id: undefined,
  epoch: 1_700_000_000_000,
  recipient_epoch: 0,
  sequence: 1,
  ordered: true,
  timestamp: 1_700_000_000_000,
  expires_at: 1_700_000_060_000,
  timeout_ms: 60_000,
  priority: 3,
  attempt: 1,
  max_hops: 4,
  path: ['pm#plan'],
  ack: 'none',
  content_type: 'application/json',
  schema_version: '1',
  payload_sha256: 'a'.repeat(64),
  payload_size: 14,
  delegation: undefined,
  in_reply_to: undefined,
}

describe('published schemas', () => {
  it.each(Object.entries(all))(
    '%s has its name, is frozen and within the bounds for schemas of strangers',
    (_, schema) => {
      expect(schema.$id).toMatch(/^https:\/\/hermes-peer\.dev\/schema\/1\/[a-z_]+\.json$/)
      expect(schema.$schema).toBe('https://json-schema.org/draft/2020-12/schema')
      expect(Object.isFrozen(schema)).toBe(true)
      createSchemaGuard(schema)
    },
  )

  it('have names of their own', () => {
    expect(new Set(Object.values(all).map((schema) => schema.$id)).size).toBe(Object.keys(all).length)
  })
})

describe('the JSON view of an envelope', () => {
  const guards = [
    (view: unknown) => createSchemaGuard(ENVELOPE_SCHEMA).check(view).ok,
    (view: unknown) =>
      new Validator(structuredClone(ENVELOPE_SCHEMA) as unknown as Schema, '2020-12').validate(view).valid,
  ]
  const fits = (view: unknown) => {
    const [own, other] = guards.map((guard) => guard(structuredClone(view)))
    expect(own).toBe(other)
    return own
  }
  const view = toJsonView(
    header,
    { input: { file: 'a.ts' } },
    { hops: 1, instance: '12D3KooW', signature: new Uint8Array([251, 255]) },
  )

  it('has the fields of the header, ttl, instance, payload and signature', () => {
    const { correlation_id, session_id, delegation, in_reply_to, ...present } = header
    expect(view).toStrictEqual({
      ...present,
      sender: { ...header.sender, instance: '12D3KooW' },
      ttl: 3,
      payload: { input: { file: 'a.ts' } },
      signature: '-_8',
    })
    expect(header.sender).not.toHaveProperty('instance')
  })

  it('has a ttl of 0 at least, and the place of a chunk', () => {
    expect(toJsonView(header, undefined, { hops: 9, frame: { index: 0, is_last: false } })).toMatchObject({
      ttl: 0,
      frame: { index: 0, is_last: false },
    })
    expect(toJsonView(header, undefined)).not.toHaveProperty('payload')
  })

  it('fits its schema, with and without a payload', () => {
    expect(fits(view)).toBe(true)
    expect(fits(toJsonView(header, undefined))).toBe(true)
    expect(fits(toJsonView({ ...header, recipient: { topic: 'news' }, message_type: 'event' }, { data: 1 }))).toBe(true)
  })

  it.each([
    ['an unknown field', { colour: 'red' }],
    ['another version form', { version: 1 }],
    ['a name that is not ASCII', { network: 'оffice' }],
    ['an id of another form', { message_id: 'msg_07' }],
    ['two recipients', { recipient: { agent_id: 'a', topic: 'b' } }],
    ['priority 6', { priority: 6 }],
    ['major 1 written out', { target_capability: 'code_review@1' }],
    ['a payload against its convention', { payload: { inputs: 1 } }],
    ['a message type of its own', { message_type: 'forward' }],
  ])('does not fit with %s', (_, change) => {
    expect(fits({ ...view, ...change })).toBe(false)
  })
})

describe('the schemas of payloads and their readers', () => {
  const TASK = 'task_abcdefghij012345'
  type Described = { readonly properties: object }
  const value = fc.constantFrom<JsonValue>(
    ...['completed', 'need_confirmation', 'msg_abcdefghij012345', 'x', '', 0, 1, -1, 1.5, 2 ** 40, true, null, [], {}],
    ...['stored', 'failed', 'task_abcdefghij012345', 'q1', 'q0', 'a'.repeat(64), 'working', [1]],
    ...[{ max_attempts: 1 }, { max_attempts: 0 }, { max_attempts: 2, backoff_ms: 5 }, { max_attempts: 2, x: 1 }],
  )
  const rows: [name: string, schema: Described, read: (value: JsonValue) => unknown, sound: JsonValue][] = [
    ['request', REQUEST_SCHEMA, readRequestPayload, { input: 1 }],
    ['response', RESPONSE_SCHEMA, readResponsePayload, { output: 1, status: 'completed' }],
    ['event', EVENT_SCHEMA, readEventPayload, { data: 1 }],
    ['cancel', CANCEL_SCHEMA, readCancelPayload, { message_id: 'msg_abcdefghij012345', expires_at: 1 }],
    ['heartbeat', HEARTBEAT_SCHEMA, readHeartbeatPayload, { time: 1, reply: true, received: 0 }],
    ['ack', ACK_SCHEMA, readAckPayload, { status: 'stored' }],
    ['end', END_SCHEMA, readEndPayload, { status: 'completed', count: 1, running_hash: 'a'.repeat(64) }],
    ['failed end', END_SCHEMA, readEndPayload, { status: 'failed', count: 0, running_hash: 'a'.repeat(64), error: {} }],
    ['task watch', TASK_WATCH_SCHEMA, readTaskWatchInput, { task_id: TASK, after: 0 }],
    ['task news', TASK_NEWS_SCHEMA, readTaskWatchOutput, { task_id: TASK, state: 'working', last: 0, events: [] }],
    ['task input', TASK_INPUT_SCHEMA, readTaskAnswerInput, { task_id: TASK, question_id: 'q1', answer: 1 }],
    ['task cancel', TASK_CANCEL_SCHEMA, readTaskCancelInput, { task_id: TASK }],
    ['tool call', TOOL_CALL_SCHEMA, readToolCall, { tool_call_id: 'c', name: 'x', input: {}, timeout_ms: 1 }],
  ]
  it.each(rows)('accept the same %s payloads', (_, schema, read, sound) => {
    const guard = createSchemaGuard(schema)
    const reads = (payload: JsonValue) => {
      try {
        return read(payload) === payload
      } catch (error) {
        if (isHermesError(error)) return false
        throw error
      }
    }
    const counts = { sound: 0, not: 0 }
    const field = fc.constantFrom(...Object.keys(schema.properties), 'other')
    const changes = fc.array(fc.tuple(field, fc.option(value, { nil: undefined })), { maxLength: 2 })
    fc.assert(
      fc.property(changes, (made) => {
        const payload: Record<string, JsonValue> = { ...(sound as Record<string, JsonValue>) }
        for (const [key, item] of made) {
          if (item === undefined) delete payload[key]
          else payload[key] = item
        }
        const accepted = reads(payload)
        counts[accepted ? 'sound' : 'not']++
        expect(guard.check(payload).ok, JSON.stringify(payload)).toBe(accepted)
      }),
      { numRuns: 1_500 },
    )
    expect(Math.min(counts.sound, counts.not)).toBeGreaterThan(50)
  })

  /** One event of each type, and a later type that this version does not know. */
  const told: [type: string, event: Record<string, JsonValue>][] = [
    ['state', { state: 'working' }],
    ['progress', { fraction: 0.5, note: '一半' }],
    ['partial', { data: null }],
    ['question', { question_id: 'q1', data: '?' }],
    ['answered', { question_id: 'q1' }],
    ['snapshot', { state: 'input_required', fraction: 1, note: 'x', questions: [{ question_id: 'q1', data: 1 }] }],
    ['end', { state: 'completed', message_type: 'response', payload: {} }],
    ['handed_on', {}],
  ]
  it.each(told)('accept the same events of a task: %s', (type, event) => {
    const guard = createSchemaGuard(TASK_NEWS_SCHEMA)
    const both = (one: Record<string, JsonValue | undefined>): boolean => {
      const news = JSON.parse(JSON.stringify({ task_id: TASK, state: 'working', events: [one] }))
      let reads = true
      try {
        readTaskWatchOutput(news)
      } catch (error) {
        if (!isHermesError(error)) throw error
        reads = false
      }
      expect(guard.check(news).ok, JSON.stringify(one)).toBe(reads)
      return reads
    }
    const sound = { n: 1, at: 0, type, ...event }
    expect(both(sound)).toBe(true)
    const wrong = ['no such', -1, 2, null, [{}], [{ question_id: 'q0', data: 1 }]]
    for (const field of Object.keys(sound)) {
      expect(both({ ...sound, [field]: undefined })).toBe(
        (type === 'snapshot' && ['fraction', 'note'].includes(field)) || (type === 'progress' && field === 'note'),
      )
      for (const value of wrong) both({ ...sound, [field]: value })
    }
  })

  it('errors as they are sent fit their schema', () => {
    const guard = createSchemaGuard(ERROR_SCHEMA)
    for (const error of [
      new HermesError('BUSY', { retryAfterMs: 5 }),
      new HermesError('VALIDATION_ERROR', { details: { path: '/a' }, message: 'x'.repeat(5_000) }),
      new HermesError('HANDLER_ERROR', { declared: { name: 'TOO_LONG', data: { max_bytes: 1 } } }),
    ]) {
      expect(guard.check(JSON.parse(JSON.stringify(toWireError(error))))).toEqual({ ok: true })
    }
    expect(guard.check({ error_code: 404, error_message: '', error_source: 'tool', retryable: false }).ok).toBe(false)
  })
})

describe('lintEnvelopeView', () => {
  const lint = (payload: unknown) => lintEnvelopeView({ message_type: 'request', payload })

  it('is content with a flat payload in snake_case', () => {
    expect(lintEnvelopeView(toJsonView(header, { input: { findings: [{ rule_id: 'x', status: 'open' }] } }))).toEqual(
      [],
    )
  })

  it('warns of more than three levels in the payload, once for each way down', () => {
    expect(lint({ input: { a: { b: { c: { d: {} } }, e: [[1]] } } })).toEqual([
      { path: '/payload/input/a/b/c', rule: 'nesting', message: expect.stringMatching(/3 levels/) },
      { path: '/payload/input/a/e/0', rule: 'nesting', message: expect.stringMatching(/flatter/) },
    ])
  })

  it('warns of camelCase anywhere, and says what to write', () => {
    expect(
      lintEnvelopeView({ messageId: 'x', payload: { input: { maxBytes: 1, 'src/myFile.ts': 1, URL: 1 } } }),
    ).toEqual([
      { path: '/messageId', rule: 'camel-case', message: expect.stringMatching(/write message_id/) },
      { path: '/payload/input/maxBytes', rule: 'camel-case', message: expect.stringMatching(/write max_bytes/) },
    ])
  })

  it('warns of numbers where a word is expected', () => {
    expect(
      lint({ output: { status: 404, ticket_state: 2, count: 3, level: 1 }, status: 'completed' }).map(
        ({ path, rule }) => [path, rule],
      ),
    ).toEqual([
      ['/payload/output/status', 'numeric-enum'],
      ['/payload/output/ticket_state', 'numeric-enum'],
    ])
  })

  it('stops after fifty warnings, and takes anything', () => {
    expect(lint(Array.from({ length: 1_000 }, () => ({ aB: 1 })))).toHaveLength(50)
    for (const odd of [null, 1, 'x', [], undefined]) expect(lintEnvelopeView(odd)).toEqual([])
  })
})
