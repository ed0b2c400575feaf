import { rmSync } from 'node:fs'
import { type HermesError, isErrorCode } from '@hermes-peer/protocol'
import type { Peer } from 'hermes-peer'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createTeam, PATIENT, temporaryFolder } from './calls/support/team.ts'
import { add, callOptionsEdge, inputEdge, odd, oddResult, resultEdge } from './wrong-input/calls.ts'
import { type Case, type Edge, failureOf } from './wrong-input/case.ts'
import { contractEdge } from './wrong-input/contract.ts'
import {
  epochFileEdge,
  folderEdge,
  keyFileEdge,
  listenEdge,
  pinsEdge,
  policyFileEdge,
  preSharedKeyEdge,
  trustFileEdge,
} from './wrong-input/files.ts'
import { certificateEdge, issuingEdge, keyChangeEdge, organisationKeyEdge } from './wrong-input/identity.ts'
import { optionsEdge } from './wrong-input/options.ts'
import { addressEdge, emitEdge, lifecycleEdge, queryEdge } from './wrong-input/reach.ts'

const EDGES: readonly Edge[] = [
  optionsEdge,
  keyFileEdge,
  preSharedKeyEdge,
  epochFileEdge,
  folderEdge,
  trustFileEdge,
  pinsEdge,
  policyFileEdge,
  certificateEdge,
  organisationKeyEdge,
  issuingEdge,
  keyChangeEdge,
  listenEdge,
  contractEdge,
  callOptionsEdge,
  inputEdge,
  resultEdge,
  addressEdge,
  emitEdge,
  queryEdge,
  lifecycleEdge,
]

const team = createTeam({ tuning: PATIENT })
let desk: Peer
let worker: Peer

beforeAll(async () => {
  worker = await team.start('worker', (peer) => {
    peer.provide(odd, (name) => oddResult(name))
    peer.provide(add, ({ a, b }) => ({ sum: a + b }))
  })
  desk = await team.start('desk')
  await desk.call(add, { a: 1, b: 1 })
})
afterAll(() => team.stop())

const asPattern = (text: RegExp | string) =>
  typeof text === 'string' ? new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')) : text

/** What is wrong with an error as an answer to that case; nothing when it is right. */
function faults(error: HermesError, { code, names, remedy = /\w{3,}/ }: Case): string[] {
  const found: string[] = []
  if (error.code !== code) found.push(`code ${error.code}, not ${code}: ${error.message}`)
  if (!asPattern(names).test(error.message)) found.push(`${names} is not named in: ${error.message}`)
  if (!asPattern(remedy).test(`${error.message}\n${error.hint}`))
    found.push(`${remedy} is not in the hint: ${error.hint}`)
  if (/\n\s*at /.test(error.message)) found.push('a stack in the message')
  if (error.message.length > 1024) found.push(`a message of ${error.message.length} characters`)
  return found
}

describe.each(EDGES)('wrong input: $edge', ({ cases }) => {
  it.each(cases)('$name → $code', async (one) => {
    const folder = temporaryFolder()
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const error = await failureOf(() => one.run({ desk, worker, folder }))
    expect(faults(error, one)).toEqual([])
  })
})

describe('the table', () => {
  const all = EDGES.flatMap(({ edge, cases }) => cases.map((one) => ({ edge, ...one })))

  it('has at least 45 cases, several at each edge, each with a code of the table and a name of its own', () => {
    expect(all.length).toBeGreaterThanOrEqual(45)
    for (const { edge, cases } of EDGES) expect(cases.length, edge).toBeGreaterThanOrEqual(4)
    expect(all.filter(({ code }) => !isErrorCode(code))).toEqual([])
    expect(new Set(all.map(({ edge, name }) => `${edge}: ${name}`)).size).toBe(all.length)
  })

  it('finds a planted fault: another code, a field that is not named, a missing remedy', async () => {
    const right: Case = {
      name: 'x',
      code: 'VALIDATION_ERROR',
      names: /^input\/b/,
      run: () => desk.call(add, { a: 1 } as never),
    }
    const error = await failureOf(() => right.run({ desk, worker, folder: '' }))
    expect(faults(error, right)).toEqual([])
    expect(faults(error, { ...right, code: 'INVALID_PAYLOAD' })).toEqual([expect.stringContaining('code')])
    expect(faults(error, { ...right, names: 'timeoutMs' })).toEqual([expect.stringContaining('is not named')])
    expect(faults(error, { ...right, remedy: 'chmod' })).toEqual([expect.stringContaining('hint')])
    await expect(failureOf(() => 'fine')).rejects.toThrow('accepted')
    await expect(
      failureOf(() => null as never as { x: 1 }).then(() => (undefined as never as { x: 1 }).x),
    ).rejects.toThrow()
  })

  it('leaves both peers in order: a call still succeeds, and the balance holds', async () => {
    await expect(desk.call(add, { a: 2, b: 3 })).resolves.toEqual({ sum: 5 })
    const { calls, succeeded, failed, inFlight } = desk.balance()
    expect({ inFlight, open: calls - succeeded - failed }).toEqual({ inFlight: 0, open: 0 })
  })
})
