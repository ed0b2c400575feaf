import { testNetwork } from '@hermes-peer/testkit'
import { capability, explain, type Peer } from 'hermes-peer'
import { expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'

const dataQuery = (domain: string) =>
  capability('data_query', {
    description: 'Answers questions about data.',
    input: z.object({ question: z.string() }),
    output: z.string(),
    effects: 'none',
    labels: { data_domain: domain },
  })

it('F-32 a newcomer captures no name: what is asked of finance stays there, and the rest goes over slowly', async () => {
  const net = testNetwork({ seed: 5 })
  onTestFinished(() => net[Symbol.asyncDispose]())
  const provide = (domain: string, by: string) => (peer: Peer) => void peer.provide(dataQuery(domain), async () => by)
  await net.until(net.launch('erp', provide('finance', 'erp')))
  const desk = await net.peer('desk')
  const ask = (where?: Record<string, string>) =>
    net.until(desk.call(dataQuery('any'), { question: '余额?' }, where ? { where } : {}))
  for (let call = 0; call < 20; call++) expect(await ask()).toBe('erp')

  await net.until(net.launch('stranger', provide('tickets', 'stranger')))
  await net.advance('1s')
  for (let call = 0; call < 40; call++) expect(await ask({ data_domain: 'finance' })).toBe('erp')
  const found = await net.until(desk.find({ capability: 'data_query', where: { data_domain: 'finance' } }))
  expect(explain(found)).toMatch(/^✓ erp .*\n✗ stranger +data_domain is tickets$/)

  // Both offer what is asked for now, and both are seen to.
  const both = await net.until(desk.find({ capability: 'data_query' }))
  expect(both.map(({ agentId }) => agentId).sort()).toEqual(['erp', 'stranger'])
  const answers: string[] = []
  for (let call = 0; call < 40; call++) answers.push(await ask())
  expect(answers.filter((by) => by === 'stranger').length).toBeLessThan(10)
})
