import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ERROR_TABLE, type ErrorRow, REFUSALS } from '../../src/index.ts'
import { FOLDER, vectorFiles } from './generate.ts'
import { type Read, read } from './support.ts'

const files = vectorFiles()

describe('the vector files', () => {
  it.each([...files.keys()])('%s is what the generator writes: the wire has not changed by accident', (name) => {
    // A wanted change: node --conditions=@hermes-peer/source --import tsx packages/protocol/test/vectors/generate.ts
    expect(readFileSync(join(FOLDER, name), 'utf8') === files.get(name)).toBe(true)
  })

  it('are all written by the generator', () => {
    const found = readdirSync(FOLDER).filter((name) => name.endsWith('.json'))
    expect(found.sort()).toEqual([...files.keys()].sort())
  })

  it('come out the same a second time', () => {
    expect([...vectorFiles()]).toEqual([...files])
  })
})

/** Refusals that depend on what a peer provides, runs or remembers; tests with running peers have them. */
const OF_A_RUNNING_PEER = [
  'PAYLOAD_TOO_LARGE',
  'FORWARDING_UNSUPPORTED',
  'STREAM_UNSUPPORTED',
  'MESSAGE_CONFLICT',
  'BUSY',
  'DRAINING',
  'CAPABILITY_NOT_FOUND',
  'VALIDATION_ERROR',
  'CALL_CYCLE',
  'NOT_OWNER',
  'POLICY_DENIED',
  'QUOTA_EXCEEDED',
  'TASK_REQUIRED',
  'TASK_NOT_FOUND',
  'TASK_NOT_WAITING',
  'CONTEXT_GONE',
]

/** Every `code` in the files, wherever it stands. */
function codesIn(value: Read): string[] {
  if (typeof value !== 'object' || value === null) return []
  const own = typeof value.code === 'string' ? [value.code] : []
  return [...own, ...Object.values(value).flatMap(codesIn)]
}

describe('the vectors', () => {
  const names = [...files.keys()].map((name) => name.replace('.json', ''))

  it('hold every refusal of an envelope and of a handshake at least once', () => {
    const found = new Set(names.filter((name) => name !== 'errors').flatMap((name) => codesIn(read(name))))
    const refusals = Object.entries(ERROR_TABLE as Record<string, ErrorRow>)
      .filter(([, row]) => row.notStarted)
      .map(([code]) => code)
    const missing = [...refusals, ...REFUSALS].filter((code) => !found.has(code) && !OF_A_RUNNING_PEER.includes(code))
    expect(missing).toEqual([])
  })

  it('hold every field of a header: with a value, at its default, and refused', () => {
    const { accepted, refused } = read('headers')
    const everything = accepted.flatMap(({ draft }: Read) => Object.keys(draft ?? {}))
    const meant = Object.keys(accepted.find(({ name }: Read) => name === 'every field').header)
    for (const field of [...meant, 'recipient_epoch', 'in_reply_to', 'ack']) {
      expect([field, everything.includes(field)]).toEqual([field, true])
      expect([field, refused.some(({ name }: Read) => name.startsWith(`${field}: `))]).toEqual([field, true])
    }
  })
})
