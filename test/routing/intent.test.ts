import { testNetwork } from '@hermes-peer/testkit'
import { capability, type DecisionRecord, explain, isHermesError, rerun } from 'hermes-peer'
import { expect, it } from 'vitest'
import { z } from 'zod'

const about = (name: string, description: string, negativeCapabilities: readonly string[] = []) =>
  capability(name, { description, input: z.string(), output: z.string(), effects: 'none', negativeCapabilities })
const business = about('data_query', 'Answers questions about business data: orders, revenue and margin.')
const tickets = about('data_query', 'Searches support tickets by status and assignee.')
const logs = about('log_scan', 'Finds anomalies in log lines.', ['does not handle non-log text'])

it('agents are found and called by what is meant', async () => {
  await using net = testNetwork({ seed: 3 })
  const desk = await net.peer('desk')
  for (const [name, contract] of [
    ['erp', business],
    ['crm', tickets],
    ['log-insight', logs],
  ] as const) {
    await net.until(net.launch(name, (peer) => peer.provide(contract, async (input) => `${name}: ${input}`)))
  }
  await net.advance('1s')
  const decisions: DecisionRecord[] = []
  desk.events.on('call.decided', ({ decision }) => decisions.push(decision))

  // A contract of that name, and what is meant by it.
  const asked = (intent: string) => net.until(desk.call(business, 'x', { intent }))
  expect(await asked('revenue of May')).toBe('erp: x')
  expect(await asked('tickets of Maria')).toBe('crm: x')
  // Not even the name is known.
  expect(await net.until(desk.callDynamic({ intent: 'anomalies in a log' }, 'y'))).toBe('log-insight: y')

  const found = await net.until(desk.find({ intent: 'anomalies in the tickets' }))
  expect(found.filter(({ usable }) => usable).map(({ agentId }) => agentId)).not.toContain('log-insight')
  expect(explain(found)).toContain('✗ log-insight')
  const error = await net.until(desk.callDynamic({ intent: 'play the piano' }, 'y').catch((caught: unknown) => caught))
  expect(isHermesError(error) && error.code).toBe('NO_CANDIDATE')

  expect(decisions).toHaveLength(3)
  for (const decision of decisions) expect(rerun(JSON.parse(JSON.stringify(decision))).same).toBe(true)
  expect(decisions.map(({ chosen }) => chosen[0]?.agentId)).toEqual(['erp', 'crm', 'log-insight'])
})
