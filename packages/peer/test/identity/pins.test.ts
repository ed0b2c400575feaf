import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { memoryPins, pinFile, pinning } from '../../src/identity/pins.ts'
import { caught, claim, keyNamed, pathBelowAFile, temporaryFolder } from './support.ts'

const dialled = { met: 'outbound', chosen: true } as const

function pinned(store = memoryPins()) {
  const reports: string[] = []
  const trust = pinning(store, { report: (text) => reports.push(text) })
  /** A whole handshake: judged, then proven. */
  const shake = (agentId: string, more: Parameters<typeof claim>[1] = dialled) => {
    const made = claim(agentId, more)
    const verdict = trust.judge(made)
    if (verdict.admitted) trust.proven?.(made)
    return verdict
  }
  return { store, reports, trust, shake }
}

describe('pinning', () => {
  it('pins an agent that was dialled at an address the user gave, and says so', () => {
    const { shake, reports, store } = pinned()
    expect(shake('reviewer')).toEqual({ admitted: true })
    expect(reports).toHaveLength(1)
    expect(reports[0]).toContain('reviewer')
    expect(reports[0]).toContain(keyNamed('reviewer').publicKey.fingerprint)
    expect(store.read()).toEqual({ reviewer: keyNamed('reviewer').publicKey.fingerprint })
  })

  it('pins nothing before the whole handshake has proven the claim', () => {
    const { trust, reports, store } = pinned()
    expect(trust.judge(claim('reviewer', dialled))).toEqual({ admitted: true })
    expect(trust.known('reviewer')).toBeUndefined()
    expect(store.read()).toEqual({})
    expect(reports).toEqual([])
  })

  it('of two keys that are proven for one name at the same time, takes the first', () => {
    const { trust, store } = pinned()
    const [one, two] = [claim('reviewer', dialled), claim('reviewer', { as: 'other', ...dialled })]
    expect([trust.judge(one), trust.judge(two)]).toEqual([{ admitted: true }, { admitted: true }])
    trust.proven?.(one)
    expect(caught(() => trust.proven?.(two)).code).toBe('IDENTITY_MISMATCH')
    expect(store.read()).toEqual({ reviewer: keyNamed('reviewer').publicKey.fingerprint })
  })

  it('admits that key from then on, whichever way it comes', () => {
    const { trust, shake, reports } = pinned()
    shake('reviewer')
    for (const met of ['inbound', 'outbound', 'gossip'] as const) {
      expect(trust.judge(claim('reviewer', { met }))).toEqual({ admitted: true })
    }
    expect(reports).toHaveLength(1)
  })

  it.each([
    ['that came by itself', { met: 'inbound', chosen: false }],
    ['that only gossip told of', { met: 'gossip', chosen: false }],
    ['at an address that the user did not give', { met: 'outbound', chosen: false }],
    ['that came by itself while the user dialled', { met: 'inbound', chosen: true }],
  ] as const)('does not pin an agent %s', (_, how) => {
    const { trust, reports, store } = pinned()
    expect(trust.judge(claim('stranger', how))).toMatchObject({ admitted: false, code: 'NOT_ALLOWED' })
    expect(reports).toEqual([])
    expect(store.read()).toEqual({})
  })

  it('F-01 refuses another key for a pinned name, and keeps the pin', () => {
    const { trust, shake, store } = pinned()
    shake('reviewer')
    expect(trust.judge(claim('reviewer', { as: 'impostor', ...dialled }))).toMatchObject({ code: 'IDENTITY_MISMATCH' })
    expect(store.read()).toEqual({ reviewer: keyNamed('reviewer').publicKey.fingerprint })
  })

  it('takes names of object properties for what they are', () => {
    const { trust, shake } = pinned()
    expect(trust.known('constructor')).toBeUndefined()
    expect(shake('constructor')).toEqual({ admitted: true })
    expect(trust.known('constructor')).toBe(keyNamed('constructor').publicKey.fingerprint)
  })
})

describe('a pin file', () => {
  it('keeps the pins over restarts, with mode 0600', () => {
    const path = join(temporaryFolder(), 'pins', 'a.json')
    pinned(pinFile(path)).shake('reviewer')
    expect((statSync(path).mode & 0o777).toString(8)).toBe('600')
    const { trust } = pinned(pinFile(path))
    expect(trust.judge(claim('reviewer'))).toEqual({ admitted: true })
    expect(trust.judge(claim('reviewer', { as: 'impostor' }))).toMatchObject({ code: 'IDENTITY_MISMATCH' })
  })

  const good = JSON.stringify({ reviewer: keyNamed('reviewer').publicKey.fingerprint }, null, 2)
  it.each([
    ['CRLF', good.replaceAll('\n', '\r\n')],
    ['a byte order mark', `\uFEFF${good}`],
  ])('F-45 with %s says the same', (_, text) => {
    const path = join(temporaryFolder(), 'pins.json')
    writeFileSync(path, text)
    expect(pinned(pinFile(path)).trust.judge(claim('reviewer'))).toEqual({ admitted: true })
  })

  it.each([
    ['truncated JSON', good.slice(0, -10)],
    ['nothing', ''],
    ['a list', '[]'],
    ['null', 'null'],
    ['a name that is none', '{"Reviewer": "sha256:00"}'],
    ['Chinese', JSON.stringify({ 审查员: keyNamed('a').publicKey.fingerprint })],
    ['a value that is no fingerprint', '{"reviewer": "abc"}'],
    ['a value that is a list of one', `{"reviewer": ["${keyNamed('a').publicKey.fingerprint}"]}`],
  ])('with %s is refused, and left as it is', (_, text) => {
    const path = join(temporaryFolder(), 'pins.json')
    writeFileSync(path, text)
    const error = caught(() => pinned(pinFile(path)))
    expect(error.code).toBe('INVALID_TRUST_FILE')
    expect(error.message).toContain(path)
    expect(error.details.field).toBe('trust.pins')
    expect(readFileSync(path, 'utf8')).toBe(text)
  })

  it('that cannot be written admits nobody new: an unwritten pin would not bind', () => {
    const path = pathBelowAFile()
    const { trust, shake, reports } = pinned(pinFile(path))
    const error = caught(() => shake('reviewer'))
    expect(error.code).toBe('STORAGE_FAILED')
    expect(error.message).toContain(path)
    expect(trust.known('reviewer')).toBeUndefined()
    expect(reports).toEqual([])
  })
})
