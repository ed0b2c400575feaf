import { testNetwork } from '@hermes-peer/testkit'
import { capability, type Peer } from 'hermes-peer'
import { expect, it } from 'vitest'
import { z } from 'zod'

const work = capability('work', {
  description: 'Says who works.',
  input: z.number(),
  output: z.string(),
  effects: 'none',
})

it('an agent that a named endorser vouches for comes before its equals, until the endorsement ends', async () => {
  await using net = testNetwork({ seed: 21 })
  const auditor = await net.peer('auditor', { journal: false })
  const word = auditor.endorse('vouched', 'work', { ttlMs: 120_000 })
  const serve = (agentId: string) => (peer: Peer) => void peer.provide(work, async () => agentId)
  for (const agentId of ['plain', 'other', 'third'])
    await net.until(net.launch(agentId, serve(agentId), { journal: false }))
  await net.until(net.launch('vouched', serve('vouched'), { journal: false, endorsements: [word] }))
  const trusting = await net.peer('trusting', { journal: false, trust: { endorsers: ['auditor'] } })
  const indifferent = await net.peer('indifferent', { journal: false })
  await net.advance('2s')

  const reasons = async (peer: Peer) =>
    (await net.until(peer.find({ capability: 'work' }))).find(({ agentId }) => agentId === 'vouched')?.reasons ?? []
  expect((await net.until(trusting.manifest('vouched'))).endorsements).toEqual([word])
  expect((await net.until(trusting.find({ capability: 'work' })))[0]?.agentId).toBe('vouched')
  expect(await reasons(trusting)).toContain('endorsed by auditor')
  expect(await reasons(indifferent)).not.toContain('endorsed by auditor')
  await net.advance('125s')
  expect(await reasons(trusting)).not.toContain('endorsed by auditor')
})

it('an endorsement of another agent, of another network or past its end is refused before the start', async () => {
  await using net = testNetwork({ seed: 22 })
  const auditor = await net.peer('auditor', { journal: false })
  const starting = (agentId: string, endorsements: string[]) =>
    net.until(net.launch(agentId, undefined, { journal: false, endorsements }))
  await expect(starting('one', [auditor.endorse('somebody', 'work')])).rejects.toMatchObject({
    code: 'INVALID_OPTION',
    message: expect.stringContaining('endorsements[0] is for somebody'),
  })
  const ended = auditor.endorse('two', 'work', { ttlMs: 1000 })
  await net.advance('2s')
  await expect(starting('two', [ended])).rejects.toMatchObject({ message: expect.stringContaining('has expired') })
  await expect(starting('three', ['AAAA'])).rejects.toMatchObject({
    message: expect.stringContaining('is not an endorsement'),
  })
  for (const [agentId, name, options, field] of [
    ['auditor', 'work', {}, 'agentId'],
    ['vouched', 'Work!', {}, 'capability'],
    ['vouched', 'work', { ttlMs: 0 }, 'ttlMs'],
    ['vouched', 'work', { ttlMs: 366 * 24 * 3600 * 1000 }, 'ttlMs'],
  ] as const) {
    expect(() => auditor.endorse(agentId, name, options)).toThrow(expect.objectContaining({ details: { field } }))
  }
})
