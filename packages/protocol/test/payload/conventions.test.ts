import { describe, expect, it } from 'vitest'
import {
  readCancelPayload,
  readEventPayload,
  readHeartbeatPayload,
  readRequestPayload,
  readResponsePayload,
} from '../../src/payload/conventions.ts'
import { readToolCall } from '../../src/payload/tool-call.ts'
import { deepFreeze, type JsonValue } from '../../src/payload/value.ts'
import { refusalOf } from './support.ts'

const message_id = 'msg_abcdefghij012345'
const tool = { tool_call_id: 'call_1', name: 'search', input: {}, timeout_ms: 1000, retry_policy: { max_attempts: 2 } }

describe('payload conventions', () => {
  const accepted: [name: string, read: (value: JsonValue) => unknown, value: JsonValue][] = [
    ['a request', readRequestPayload, { input: null }],
    [
      'a request with all fields',
      readRequestPayload,
      { input: 1, context: {}, constraints: { max: 1 }, action: 'start' },
    ],
    ['a completed response', readResponsePayload, { output: null, status: 'completed' }],
    ['a plan', readResponsePayload, { output: null, status: 'need_confirmation', partial_result: { plan: 1 } }],
    ['an event', readEventPayload, { data: [1] }],
    ['a cancel', readCancelPayload, { message_id, expires_at: 1 }],
    ['a heartbeat', readHeartbeatPayload, { time: 1, reply: true, received: 0 }],
    ['a tool call', readToolCall, tool],
    ['a tool call without retry policy', readToolCall, { tool_call_id: 'x', name: 'y', input: null, timeout_ms: 1 }],
  ]
  it.each(accepted)('takes %s as it is', (_, read, value) => {
    expect(read(value)).toBe(value)
  })

  const refused: [name: string, read: (value: JsonValue) => unknown, value: JsonValue, path: string][] = [
    ['a request that is a list', readRequestPayload, [], ''],
    ['a request that is null', readRequestPayload, null, ''],
    ['a request without input', readRequestPayload, {}, '/input'],
    ['a request with a field of its own', readRequestPayload, { input: 1, inputs: 2 }, '/inputs'],
    ['a request whose context is a list', readRequestPayload, { input: 1, context: [] }, '/context'],
    ['a request whose constraints are text', readRequestPayload, { input: 1, constraints: 'x' }, '/constraints'],
    ['a request whose action is empty', readRequestPayload, { input: 1, action: '' }, '/action'],
    ['a response without status', readResponsePayload, { output: 1 }, '/status'],
    ['a response of an unknown status', readResponsePayload, { output: 1, status: 'done' }, '/status'],
    ['a response without output', readResponsePayload, { status: 'completed' }, '/output'],
    [
      'a plan without its content',
      readResponsePayload,
      { output: null, status: 'need_confirmation' },
      '/partial_result',
    ],
    ['a response with a field of its own', readResponsePayload, { output: 1, status: 'completed', x: 1 }, '/x'],
    ['an event without data', readEventPayload, {}, '/data'],
    ['an event with a field of its own', readEventPayload, { data: 1, topic: 'x' }, '/topic'],
    ['a cancel of another form of id', readCancelPayload, { message_id: 'msg_07', expires_at: 1 }, '/message_id'],
    ['a cancel with a fraction', readCancelPayload, { message_id, expires_at: 1.5 }, '/expires_at'],
    ['a cancel without expiry', readCancelPayload, { message_id }, '/expires_at'],
    ['a heartbeat with text for time', readHeartbeatPayload, { time: '1', reply: true, received: 0 }, '/time'],
    ['a heartbeat with 1 for true', readHeartbeatPayload, { time: 1, reply: 1, received: 0 }, '/reply'],
    ['a heartbeat with a negative count', readHeartbeatPayload, { time: 1, reply: true, received: -1 }, '/received'],
    ['a tool call with a blank id', readToolCall, { ...tool, tool_call_id: '' }, '/tool_call_id'],
    ['a tool call without input', readToolCall, { tool_call_id: 'x', name: 'y', timeout_ms: 1 }, '/input'],
    ['a tool call without time', readToolCall, { ...tool, timeout_ms: 0 }, '/timeout_ms'],
    [
      'a tool call tried for ever',
      readToolCall,
      { ...tool, retry_policy: { max_attempts: 11 } },
      '/retry_policy/max_attempts',
    ],
    [
      'a retry policy of its own',
      readToolCall,
      { ...tool, retry_policy: { max_attempts: 1, x: 1 } },
      '/retry_policy/x',
    ],
    ['a tool call in camelCase', readToolCall, { ...tool, timeoutMs: 1 }, '/timeoutMs'],
  ]
  it.each(refused)('refuses %s', (_, read, value, path) => {
    const error = refusalOf(() => read(value))
    expect(error.code).toBe('INVALID_PAYLOAD')
    expect(error.details.path).toBe(path)
    expect(error.message).toContain(`payload${path}: `)
  })
})

describe('deepFreeze', () => {
  it('freezes to the leaves and gives the same value', () => {
    const value = { a: [{ b: 1 }], c: 'x' }
    expect(deepFreeze(value)).toBe(value)
    expect(() => ((value.a[0] as { b: number }).b = 2)).toThrow(TypeError)
    expect(() => value.a.push({ b: 2 })).toThrow(TypeError)
  })
})
