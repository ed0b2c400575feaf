import { describe, expect, it } from 'vitest'
import {
  type ContentType,
  decodePayload,
  encodePayload,
  type JsonValue,
  readAckPayload,
  readCancelPayload,
  readEndPayload,
  readEventPayload,
  readHeartbeatPayload,
  readRequestPayload,
  readResponsePayload,
  readTaskAnswerInput,
  readTaskCancelInput,
  readTaskWatchInput,
  readTaskWatchOutput,
  toHex,
} from '../../src/index.ts'
import { bytesOf } from './scene.ts'
import { expected, type Read, read, verdicts } from './support.ts'

const FORMS: [string, ContentType][] = [
  ['payload-json', 'application/json'],
  ['payload-msgpack', 'application/msgpack'],
]

describe.each(FORMS)('%s', (file, contentType) => {
  const { encoded, spellings, refused } = read(file)
  const decode = (vector: Read) => decodePayload(contentType, bytesOf(vector.bytes))

  it.each(encoded as Read[])('is written and read: $name', ({ value, bytes }) => {
    expect(toHex(encodePayload(contentType, value))).toBe(bytes)
    expect(decode({ bytes })).toStrictEqual(value)
  })

  it.each(spellings as Read[])('is read in another spelling: $name', (vector) => {
    const value = decode(vector)
    if ('value' in vector) expect(value).toStrictEqual(vector.value)
  })

  it('is refused when it is not strict', () => {
    expect(verdicts(refused, decode)).toEqual(expected(refused))
  })
})

describe('payload shapes', () => {
  const { about: _, ...shapes } = read('payload-shapes')
  const readers: Record<string, (payload: JsonValue) => unknown> = {
    request: readRequestPayload,
    response: readResponsePayload,
    event: readEventPayload,
    cancel: readCancelPayload,
    end: readEndPayload,
    heartbeat: readHeartbeatPayload,
    ack: readAckPayload,
    'hermes.task.watch': readTaskWatchInput,
    'hermes.task.watch answer': readTaskWatchOutput,
    'hermes.task.input': readTaskAnswerInput,
    'hermes.task.cancel': readTaskCancelInput,
  }

  it.each(Object.keys(shapes))('of %s', (type) => {
    const judge = readers[type] as (payload: JsonValue) => unknown
    for (const payload of shapes[type].accepted) expect(judge(payload)).toEqual(payload)
    const refused = shapes[type].refused.map((payload: JsonValue) => ({
      name: JSON.stringify(payload),
      code: 'INVALID_PAYLOAD',
      payload,
    }))
    expect(verdicts(refused, ({ payload }) => judge(payload))).toEqual(expected(refused))
  })
})
