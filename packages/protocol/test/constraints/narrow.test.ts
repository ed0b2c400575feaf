import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type Constraint,
  type Constraints,
  type DelegationLink,
  intersection,
  judgeConstraints,
  openDelegation,
  placed,
  widening,
} from '../../src/index.ts'
import { chainOf, linkOf } from '../vectors/delegations.ts'
import { KEYS, type Name, NETWORK, NOW } from '../vectors/scene.ts'

const scalar = fc.constantFrom<(string | number | boolean | null)[]>(
  '',
  'x',
  'xy',
  'xyz',
  '财',
  0,
  1,
  2,
  5,
  true,
  false,
  null,
)
const numbers = fc.constantFrom(0, 1, 2, 5)
const fields = {
  equals: scalar,
  one_of: fc.array(scalar, { minLength: 1, maxLength: 4 }),
  min: numbers,
  max: numbers,
  prefix: fc.constantFrom('x', 'xy', '财'),
}
/** Mostly of one field: several of different types let nothing through. */
const constraint = fc
  .oneof(
    ...Object.entries(fields).map(([field, one]) => (one as fc.Arbitrary<unknown>).map((said) => ({ [field]: said }))),
    fc.record({ min: numbers, max: numbers }),
    fc.record(fields, { requiredKeys: [] }),
  )
  .map((one) => one as Constraint)
  .filter(
    (one) => Object.keys(one).length > 0 && !(one.min !== undefined && one.max !== undefined && one.min > one.max),
  )
const pointer = fc.constantFrom('/a', '/a', '/b', '')
const constraints: fc.Arbitrary<Constraints> = fc.dictionary(pointer, constraint, { maxKeys: 2 })
/** Constraints, and others that differ from them in a little: where something is forgotten, it shows there. */
const alike = fc.tuple(constraints, pointer, constraint, fc.boolean()).map(([parent, at, one, beside]) => {
  const child: Constraints = { ...parent, [at]: beside ? { ...parent[at], ...one } : one }
  return { parent, child }
})
const value = fc.oneof(numbers, fc.constantFrom('x', 'xy', 'xyz', '财'), scalar, fc.array(scalar, { maxLength: 2 }))
const input = fc.oneof(
  value,
  value.map((a) => ({ a })),
  fc.record({ a: value, b: value }, { requiredKeys: [] }),
)

const lets = (one: Constraints, what: unknown) => judgeConstraints(placed(one), what) === 'yes'

describe('constraints beside each other', () => {
  it('what is said to be no wider lets through nothing more', () => {
    let narrower = 0
    fc.assert(
      fc.property(alike, fc.array(input, { minLength: 10, maxLength: 10 }), ({ child, parent }, inputs) => {
        if (widening(child, parent)) return
        narrower++
        for (const one of inputs) if (lets(child, one)) expect([one, lets(parent, one)]).toEqual([one, true])
      }),
      { numRuns: 5000, seed: 1 },
    )
    expect(narrower).toBeGreaterThan(500)
  })

  it('an intersection lets through what both let through, and is no wider than either', () => {
    let met = 0
    fc.assert(
      fc.property(constraints, constraints, fc.array(input, { minLength: 10, maxLength: 10 }), (one, other, inputs) => {
        const both = intersection(one, other)
        const nothing = 'nothingAt' in both && typeof both.nothingAt === 'string'
        for (const what of inputs) {
          const wanted = lets(one, what) && lets(other, what)
          if (wanted) met++
          expect([what, nothing ? false : lets(both as Constraints, what)]).toEqual([what, wanted])
        }
        if (!nothing)
          expect([widening(both as Constraints, one), widening(both as Constraints, other)]).toEqual([
            undefined,
            undefined,
          ])
      }),
      { numRuns: 3000, seed: 1 },
    )
    expect(met).toBeGreaterThan(100)
  })
})

describe('threat: delegation widening — child ⊆ parent', () => {
  const AGENTS: readonly Name[] = ['pm', 'coder', 'reviewer', 'tester-a', 'billing/ledger', 'organisation']
  const context = {
    network: NETWORK,
    now: NOW,
    aheadMs: 0,
    lateMs: 0,
    keyOf: (agentId: string) => KEYS[agentId as Name].publicKey,
  }
  const link = fc.record({
    capabilities: fc.uniqueArray(fc.constantFrom('pay', 'fix', 'read'), { minLength: 1 }),
    constraints,
    expires_at: fc.integer({ min: NOW + 1, max: NOW + 3 }),
    /** Made as it should be, on top of the one before; or just signed. */
    honest: fc.boolean(),
  })

  it('whatever chain is accepted, no link gives what one before it does not', () => {
    let accepted = 0
    fc.assert(
      fc.property(
        fc.array(link, { minLength: 1, maxLength: 5 }),
        fc.array(input, { minLength: 8, maxLength: 8 }),
        (steps, inputs) => {
          const links: DelegationLink[] = []
          for (const [index, { honest, ...said }] of steps.entries()) {
            const parent = links.at(-1)
            const like = { ...parent?.constraints, ...said.constraints }
            const met = parent && honest ? intersection(parent.constraints, said.constraints) : like
            if ('nothingAt' in met && typeof met.nothingAt === 'string') return
            const capabilities =
              parent && honest
                ? said.capabilities.filter((name) => parent.capabilities.includes(name))
                : said.capabilities
            if (capabilities.length === 0) return
            const expires_at = parent && honest ? Math.min(said.expires_at, parent.expires_at) : said.expires_at
            const more = { capabilities, constraints: met as Constraints, expires_at }
            links.push(linkOf(AGENTS[index] as Name, AGENTS[index + 1] as Name, more))
          }
          let opened: readonly DelegationLink[]
          try {
            opened = openDelegation(chainOf(links), context)
          } catch (error) {
            // Who made each link of what stood before must not be refused for being wider.
            if (steps.slice(1).every(({ honest }) => honest)) throw error
            return
          }
          if (opened.length > 1) accepted++
          for (const [index, child] of opened.entries()) {
            for (const parent of opened.slice(0, index)) {
              expect(child.capabilities.every((name) => parent.capabilities.includes(name))).toBe(true)
              expect(child.expires_at).toBeLessThanOrEqual(parent.expires_at)
              for (const what of inputs)
                if (lets(child.constraints, what)) expect(lets(parent.constraints, what)).toBe(true)
            }
          }
        },
      ),
      { numRuns: 600, seed: 1 },
    )
    expect(accepted).toBeGreaterThan(30)
  })
})
