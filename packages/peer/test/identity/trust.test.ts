import { describe, expect, it } from 'vitest'
import { allowList } from '../../src/identity/allow-list.ts'
import { memoryPins, pinning } from '../../src/identity/pins.ts'
import { anyOf, nobody } from '../../src/identity/trust.ts'
import { claim, keyNamed } from './support.ts'

const dialled = { met: 'outbound', chosen: true } as const
const listed = (name: string, as = name) =>
  allowList([{ agent_id: name, fingerprint: keyNamed(as).publicKey.fingerprint }])

describe('several modes of trust together', () => {
  it('admit whom one of them admits', () => {
    const trust = anyOf([listed('a'), listed('b')])
    expect(trust.judge(claim('a')).admitted).toBe(true)
    expect(trust.judge(claim('b')).admitted).toBe(true)
    expect(trust.judge(claim('c'))).toMatchObject({ admitted: false, code: 'NOT_ALLOWED' })
    expect(trust.known('b')).toBe(keyNamed('b').publicKey.fingerprint)
    expect(trust.known('c')).toBeUndefined()
  })

  it('let a later, softer mode never overrule a key on record', () => {
    const store = memoryPins()
    const trust = anyOf([listed('a'), pinning(store, { report: () => {} })])
    expect(trust.judge(claim('a', { as: 'impostor', ...dialled }))).toMatchObject({ code: 'IDENTITY_MISMATCH' })
    expect(store.read()).toEqual({})
  })

  it('let a pin on record not be overruled by a mode before it that has none', () => {
    const store = memoryPins()
    store.write({ a: keyNamed('a').publicKey.fingerprint })
    const trust = anyOf([listed('b'), pinning(store, { report: () => {} })])
    expect(trust.judge(claim('a')).admitted).toBe(true)
    expect(trust.judge(claim('a', { as: 'impostor', ...dialled }))).toMatchObject({ code: 'IDENTITY_MISMATCH' })
  })

  it('remember a proven claim in the mode that admitted it, and nowhere else', () => {
    const store = memoryPins()
    const trust = anyOf([listed('a'), pinning(store, { report: () => {} })])
    trust.proven?.(claim('a', dialled))
    expect(store.read()).toEqual({})
    trust.proven?.(claim('b', dialled))
    expect(store.read()).toEqual({ b: keyNamed('b').publicKey.fingerprint })
  })

  it('describe themselves', () => {
    expect(anyOf([listed('a'), nobody()]).describe()).toBe(`${listed('a').describe()}; ${nobody().describe()}`)
  })
})

describe('no trust', () => {
  it('admits nobody, whichever way they come', () => {
    for (const how of [{}, dialled, { met: 'gossip' } as const]) {
      expect(nobody().judge(claim('a', how))).toMatchObject({ admitted: false, code: 'NOT_ALLOWED' })
    }
  })
})
