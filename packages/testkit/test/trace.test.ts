import { expect, it } from 'vitest'
import { createTrace } from '../src/trace.ts'

const hashOf = (...events: string[]) => {
  const trace = createTrace()
  for (const event of events) trace.add(event)
  return trace.hash()
}

it('tells runs apart by what happened, in which order, and how it was divided', () => {
  expect(hashOf('a', 'b')).toBe(hashOf('a', 'b'))
  const others = [hashOf('b', 'a'), hashOf('ab'), hashOf('a'), hashOf('a', 'b', ''), hashOf('1:a', 'b'), hashOf()]
  expect(new Set([hashOf('a', 'b'), ...others]).size).toBe(7)
})

it('can be asked for its hash at any time without changing it', () => {
  const trace = createTrace()
  trace.add('a')
  expect(trace.hash()).toBe(trace.hash())
  trace.add('b')
  expect(trace.hash()).toBe(hashOf('a', 'b'))
  expect(trace.hash()).toMatch(/^[0-9a-f]{64}$/)
  expect(trace.length).toBe(2)
})
