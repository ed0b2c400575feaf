import type { Vector } from './scene.ts'

const ID = 'msg_0123456789abcdef'
const TASK = 'task_0123456789abcdef'
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
  ack: {
    accepted: [{ status: 'stored' }, { status: 'stored', task_id: TASK }],
    refused: [
      null,
      {},
      { status: 'seen' },
      { task_id: TASK },
      { status: 'stored', task_id: ID },
      { status: 'stored', n: 1 },
    ],
  },
  'hermes.task.watch': {
    accepted: [
      { task_id: TASK, after: 0 },
      { task_id: TASK, after: 17 },
    ],
    refused: [
      null,
      {},
      { task_id: TASK },
      { after: 0 },
      { task_id: ID, after: 0 },
      { task_id: TASK, after: -1 },
      { task_id: TASK, after: 1.5 },
      { task_id: TASK, after: 1, more: 1 },
    ],
  },
  'hermes.task.watch answer': {
    accepted: [
      { task_id: TASK, state: 'accepted', events: [] },
      {
        task_id: TASK,
        state: 'input_required',
        events: [
          { n: 1, at: 0, type: 'state', state: 'accepted' },
          { n: 2, at: 5, type: 'state', state: 'working' },
          { n: 3, at: 5, type: 'progress', fraction: 0 },
          { n: 4, at: 6, type: 'progress', fraction: 1, note: '完成' },
          { n: 5, at: 6, type: 'partial', data: null },
          { n: 6, at: 7, type: 'question', question_id: 'q6', data: { plan: '改一行' } },
          { n: 7, at: 7, type: 'state', state: 'input_required' },
        ],
      },
      {
        task_id: TASK,
        state: 'completed',
        events: [
          { n: 256, at: 9, type: 'snapshot', state: 'working', fraction: 0.5, note: '', partial: [], questions: [] },
          { n: 257, at: 9, type: 'answered', question_id: 'q6' },
          {
            n: 258,
            at: 9,
            type: 'end',
            state: 'completed',
            message_type: 'response',
            payload: { output: 1, status: 'completed' },
          },
        ],
      },
      { task_id: TASK, state: 'working', events: [{ n: 1, at: 0, type: 'of a later minor version', more: 1 }] },
    ],
    refused: [
      null,
      {},
      { task_id: TASK, state: 'working' },
      { task_id: ID, state: 'working', events: [] },
      { task_id: TASK, state: 'submitted', events: [] },
      ...[
        { at: 0, type: 'state', state: 'working' },
        { n: 0, at: 0, type: 'state', state: 'working' },
        { n: 1, at: -1, type: 'state', state: 'working' },
        { n: 1, at: 0 },
        { n: 1, at: 0, type: 'state' },
        { n: 1, at: 0, type: 'progress', fraction: 1.1 },
        { n: 1, at: 0, type: 'progress', fraction: 1, note: 1 },
        { n: 1, at: 0, type: 'partial' },
        { n: 1, at: 0, type: 'question', question_id: 'q0', data: 1 },
        { n: 1, at: 0, type: 'question', question_id: 'q1' },
        { n: 1, at: 0, type: 'answered' },
        { n: 1, at: 0, type: 'snapshot', state: 'working' },
        { n: 1, at: 0, type: 'end', state: 'working', message_type: 'response', payload: 1 },
        { n: 1, at: 0, type: 'end', state: 'failed', message_type: 'ack', payload: 1 },
        { n: 1, at: 0, type: 'end', state: 'failed', message_type: 'error' },
      ].map((event) => ({ task_id: TASK, state: 'working', events: [event] })),
      {
        task_id: TASK,
        state: 'working',
        events: [
          { n: 2, at: 0, type: 'state', state: 'working' },
          { n: 2, at: 0, type: 'state', state: 'working' },
        ],
      },
    ],
  },
  'hermes.task.input': {
    accepted: [
      { task_id: TASK, question_id: 'q6', answer: null },
      { task_id: TASK, question_id: 'q6', answer: { approved: true } },
    ],
    refused: [
      null,
      { task_id: TASK, question_id: 'q6' },
      { task_id: TASK, question_id: '6', answer: 1 },
      { task_id: ID, question_id: 'q6', answer: 1 },
      { task_id: TASK, question_id: 'q6', answer: 1, more: 1 },
    ],
  },
  'hermes.task.cancel': {
    accepted: [{ task_id: TASK }],
    refused: [null, {}, { task_id: ID }, { task_id: TASK, why: '' }],
  },
}

export function shapeVectors(): Vector {
  return {
    about:
      'The form of payloads by message type, and of the input (or answer) of what every peer offers for tasks, as parsed data. Refused: INVALID_PAYLOAD. The payload of an error is in errors.json.',
    ...SHAPES,
  }
}
