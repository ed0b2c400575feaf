import type { Vector } from './scene.ts'

const ID = 'msg_0123456789abcdef'
const HASH = 'abcdef0123456789'.repeat(4)

/** The form of each payload: data that fits and data that does not. */
const SHAPES: Record<string, { accepted: readonly unknown[]; refused: readonly unknown[] }> = {
  request: {
    accepted: [
      { input: {} },
      { input: null },
      { input: '只要文字' },
      { input: [1, 2], context: { delegation: 'x' }, constraints: { max_tokens: 5 }, action: 'fix' },
    ],
    refused: [
      null,
      [],
      'text',
      {},
      { output: 1 },
      { input: 1, more: 1 },
      { input: 1, context: [] },
      { input: 1, constraints: 7 },
      { input: 1, action: '' },
      { input: 1, action: 'a'.repeat(129) },
      { input: 1, action: 7 },
    ],
  },
  response: {
    accepted: [
      { output: null, status: 'completed' },
      { output: {}, status: 'completed', partial_result: 1 },
      { output: null, status: 'need_confirmation', partial_result: { plan: ['撤销'] } },
    ],
    refused: [
      null,
      {},
      { output: 1 },
      { status: 'completed' },
      { output: 1, status: 'COMPLETED' },
      { output: 1, status: 1 },
      { output: 1, status: 'need_confirmation' },
      { output: 1, status: 'completed', more: 1 },
    ],
  },
  event: {
    accepted: [{ data: null }, { data: { commit: 'a1' }, action: 'broken' }],
    refused: [null, [], {}, { input: 1 }, { data: 1, more: 1 }, { data: 1, action: '' }],
  },
  cancel: {
    accepted: [
      { message_id: ID, expires_at: 0 },
      { expires_at: 1, message_id: ID },
    ],
    refused: [
      null,
      {},
      { message_id: ID },
      { expires_at: 1 },
      { message_id: 'msg_x', expires_at: 1 },
      { message_id: ID, expires_at: -1 },
      { message_id: ID, expires_at: 1.5 },
      { message_id: ID, expires_at: '1' },
      { message_id: ID, expires_at: 1, why: '' },
    ],
  },
  end: {
    accepted: [
      { status: 'completed', count: 0, running_hash: HASH },
      { status: 'completed', count: 3, running_hash: HASH, output: null },
      { status: 'completed', count: 3, running_hash: HASH, output: { 词: 3 } },
      { status: 'failed', count: 1, running_hash: HASH, error: { error_code: 'TIMEOUT' } },
    ],
    refused: [
      null,
      {},
      { status: 'completed', count: 1 },
      { status: 'completed', running_hash: HASH },
      { count: 1, running_hash: HASH },
      { status: 'COMPLETED', count: 1, running_hash: HASH },
      { status: 'need_confirmation', count: 1, running_hash: HASH },
      { status: 'completed', count: -1, running_hash: HASH },
      { status: 'completed', count: 1.5, running_hash: HASH },
      { status: 'completed', count: 1, running_hash: HASH.toUpperCase() },
      { status: 'completed', count: 1, running_hash: HASH.slice(1) },
      { status: 'completed', count: 1, running_hash: HASH, error: {} },
      { status: 'failed', count: 1, running_hash: HASH },
      { status: 'failed', count: 1, running_hash: HASH, error: 'TIMEOUT' },
      { status: 'failed', count: 1, running_hash: HASH, error: {}, output: 1 },
      { status: 'completed', count: 1, running_hash: HASH, more: 1 },
    ],
  },
  heartbeat: {
    accepted: [
      { time: 0, reply: false, received: 0 },
      { time: 1, reply: true, received: 512 },
    ],
    refused: [
      null,
      {},
      { time: 1, reply: true },
      { time: 1, received: 1 },
      { reply: true, received: 1 },
      { time: -1, reply: true, received: 1 },
      { time: 1, reply: 1, received: 1 },
      { time: 1, reply: true, received: 0.5 },
      { time: 1, reply: true, received: 1, load: 3 },
    ],
  },
}

export function shapeVectors(): Vector {
  return {
    about:
      'The form of payloads by message type, as parsed data. Refused: INVALID_PAYLOAD. The payload of an error is in errors.json.',
    ...SHAPES,
  }
}
