import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { toBase64url } from '@hermes-peer/protocol'
import { describe, expect, it } from 'vitest'
import { isLoopback, openPrivateFolder } from '../../src/identity/private-folder.ts'
import { caught, claim, keyNamed, pathBelowAFile, temporaryFolder } from './support.ts'

const card = (agentId: string, more: object = {}) => ({
  key: keyNamed(agentId).publicKey.raw,
  network: 'default',
  addresses: [`/ip4/127.0.0.1/tcp/4001/p2p/${agentId}`],
  ...more,
})

describe('the private folder', () => {
  it('is made with mode 0700', () => {
    const path = join(temporaryFolder(), 'a', 'b')
    openPrivateFolder(path, 'desk')
    expect((statSync(path).mode & 0o777).toString(8)).toBe('700')
    expect((statSync(join(path, 'agents')).mode & 0o777).toString(8)).toBe('700')
  })

  it.each([0o755, 0o750, 0o701, 0o770, 0o777])('with mode %o is refused', (mode) => {
    const path = temporaryFolder()
    chmodSync(path, mode)
    const error = caught(() => openPrivateFolder(path, 'desk'))
    expect(error.code).toBe('STORAGE_FAILED')
    expect(error.message).toContain(path)
    expect(error.hint).toContain(`chmod 700 ${path}`)
    expect(error.details.field).toBe('folder')
  })

  it('is refused when others can look at the cards in it', () => {
    const path = temporaryFolder()
    openPrivateFolder(path, 'desk')
    chmodSync(join(path, 'agents'), 0o755)
    expect(caught(() => openPrivateFolder(path, 'desk')).message).toContain(join(path, 'agents'))
  })

  it('cannot be made below a file, nor where a file is', () => {
    const below = pathBelowAFile()
    expect(caught(() => openPrivateFolder(below, 'desk'))).toMatchObject({
      code: 'STORAGE_FAILED',
      details: { field: 'folder' },
    })
    const file = join(below, '..')
    expect(caught(() => openPrivateFolder(file, 'desk')).code).toBe('STORAGE_FAILED')
  })

  it('F-40 has one file per agent id, and no path in it', () => {
    const path = temporaryFolder()
    const folder = openPrivateFolder(path, 'billing/ledger')
    folder.announce(card('billing/ledger'))
    expect(readdirSync(join(path, 'agents'))).toEqual(['billing%2Fledger.json'])
    expect(folder.keyFile).toBe(join(path, 'keys', 'billing%2Fledger.pem'))
    expect(folder.pinFile).toBe(join(path, 'pins', 'billing%2Fledger.json'))
  })
})

describe('cards', () => {
  function pair() {
    const path = temporaryFolder()
    return { path, desk: openPrivateFolder(path, 'desk'), coder: openPrivateFolder(path, 'coder') }
  }

  it('make agents of one folder trust each other, over loopback', () => {
    const { desk, coder } = pair()
    expect(desk.trust.judge(claim('coder'))).toMatchObject({ code: 'NOT_ALLOWED' })
    coder.announce(card('coder'))
    expect(desk.trust.judge(claim('coder'))).toEqual({ admitted: true })
    expect(desk.trust.known('coder')).toBe(keyNamed('coder').publicKey.fingerprint)
  })

  it.each([
    '/ip4/10.0.0.5/tcp/4001',
    '/ip4/0.0.0.0/tcp/1',
    '/ip6/fe80::1/tcp/1',
    '/ip4/1270.0.0.1/tcp/1',
    '/dns4/localhost.evil.example/tcp/1',
  ])('do not make them trust the same key from %s', (address) => {
    const { desk, coder } = pair()
    coder.announce(card('coder'))
    expect(desk.trust.judge(claim('coder', { address }))).toMatchObject({ admitted: false, code: 'NOT_ALLOWED' })
  })

  it('F-01 do not make them trust another key under the name', () => {
    const { desk, coder } = pair()
    coder.announce(card('coder'))
    expect(desk.trust.judge(claim('coder', { as: 'impostor' }))).toMatchObject({ code: 'IDENTITY_MISMATCH' })
  })

  it('tell the addresses of the others of the same network', () => {
    const { path, desk, coder } = pair()
    desk.announce(card('desk'))
    coder.announce(card('coder'))
    openPrivateFolder(path, 'other').announce(card('other', { network: 'elsewhere' }))
    expect(desk.neighbours('default')).toEqual(['/ip4/127.0.0.1/tcp/4001/p2p/coder'])
    expect(coder.neighbours('elsewhere')).toEqual(['/ip4/127.0.0.1/tcp/4001/p2p/other'])
  })

  it('are taken away, but not when a later life has written its own', () => {
    const { path, coder } = pair()
    const file = join(path, 'agents', 'coder.json')
    const withdraw = coder.announce(card('coder'))
    withdraw()
    expect(readdirSync(join(path, 'agents'))).toEqual([])
    const again = coder.announce(card('coder'))
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), pid: process.ppid }))
    again()
    expect(readdirSync(join(path, 'agents'))).toEqual(['coder.json'])
  })

  it('are readable by their owner only', () => {
    const { path, coder } = pair()
    coder.announce(card('coder'))
    expect((statSync(join(path, 'agents', 'coder.json')).mode & 0o777).toString(8)).toBe('600')
  })

  it('of processes that are gone lead nowhere', () => {
    const { path, desk } = pair()
    const file = join(path, 'agents', 'ghost.json')
    const ghost = {
      agent_id: 'ghost',
      key: toBase64url(keyNamed('ghost').publicKey.raw),
      network: 'default',
      addresses: ['/ip4/127.0.0.1/tcp/1'],
    }
    // Larger than any pid the kernel gives.
    writeFileSync(file, JSON.stringify({ ...ghost, pid: 2 ** 30 }))
    expect(desk.neighbours('default')).toEqual([])
  })

  it.each([
    ['truncated', '{"agent_id": "coder"'],
    [
      'of another agent',
      JSON.stringify({ ...card('x'), agent_id: 'x', key: toBase64url(keyNamed('coder').publicKey.raw), pid: 1 }),
    ],
    ['with a short key', JSON.stringify({ agent_id: 'coder', key: 'AAAA', network: 'default', addresses: [], pid: 1 })],
    ['with null', 'null'],
    [
      'with addresses that are none',
      JSON.stringify({
        agent_id: 'coder',
        key: toBase64url(keyNamed('coder').publicKey.raw),
        network: 'default',
        addresses: [5],
        pid: 1,
      }),
    ],
  ])('%s are passed over', (_, text) => {
    const { path, desk } = pair()
    writeFileSync(join(path, 'agents', 'coder.json'), text)
    mkdirSync(join(path, 'agents', 'folder.json'))
    expect(desk.trust.judge(claim('coder'))).toMatchObject({ code: 'NOT_ALLOWED' })
    expect(desk.trust.known('coder')).toBeUndefined()
    expect(desk.neighbours('elsewhere')).toEqual([])
  })
})

describe('loopback', () => {
  it.each(['/ip4/127.0.0.1/tcp/1', '/ip4/127.9.9.9/tcp/1', '/ip6/::1/tcp/1', '/dns4/localhost/tcp/1', '/unix/tmp/x'])(
    'is %s',
    (address) => {
      expect(isLoopback(address)).toBe(true)
    },
  )

  it.each([
    '/ip4/10.0.0.1/tcp/1',
    '/ip6/::2/tcp/1',
    '/ip6/::ffff:10.0.0.1/tcp/1',
    '/dns4/localhost2/tcp/1',
    '127.0.0.1',
    '/ip4/127.0.0.1/tcp/1/p2p/12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp/p2p-circuit/p2p/12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp',
    '',
    undefined,
  ])('is not %s', (address) => {
    expect(isLoopback(address)).toBe(false)
  })
})
