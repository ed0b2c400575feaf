import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { toBase64url } from '@hermes-peer/protocol'
import { manualClock } from '@hermes-peer/testkit'
import { describe, expect, it, onTestFinished } from 'vitest'
import { staticDirectory } from '../../../src/directory/sources/static.ts'
import { keyNamed, peerIdNamed } from '../support.ts'
import { contextOf } from './support.ts'

const key = (name: string) => toBase64url(keyNamed(name).publicKey.raw)
const entry = (name: string, more: object = {}) => ({
  agent_id: name,
  key: key(name),
  addresses: ['/ip4/10.0.0.7/tcp/4001'],
  capabilities: ['work'],
  ...more,
})

function file(content: string | Uint8Array) {
  const folder = mkdtempSync(join(tmpdir(), 'hermes-static-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, '代理.yaml')
  const clock = manualClock()
  const reports: string[] = []
  let version = 0
  const write = (text: string | Uint8Array): void => {
    writeFileSync(path, text)
    // Two changes within one tick of the file system's clock are told apart.
    utimesSync(path, 1000 + version, 1000 + version++)
  }
  write(content)
  const source = staticDirectory(path)(contextOf('me', { clock, report: (text) => reports.push(text) }))
  const find = async (capability = 'work') => {
    await clock.timeline.advance(1000)
    const found: string[] = []
    for await (const { peerId } of source.find(capability, { signal: new AbortController().signal })) found.push(peerId)
    return found
  }
  return { path, folder, source, write, find, reports, clock }
}

describe('a file of agents', () => {
  it('is YAML with remarks, or JSON; with a BOM and CRLF too', async () => {
    const yaml = [
      '\uFEFF# 谁能做什么',
      'agents:',
      '  - agent_id: a',
      `    peer_id: ${peerIdNamed('a')}`,
      '    addresses: [/dns4/a.example/tcp/4001, "/ip6/::1/tcp/4001"]',
      '    capabilities: [work, report@2]',
      '',
    ].join('\r\n')
    for (const text of [yaml, JSON.stringify({ agents: [entry('a')] })]) {
      const { source, find } = file(text)
      await source.open?.()
      expect(await find()).toEqual([peerIdNamed('a')])
    }
  })

  it('is read again when it has changed, and keeps the old content while it is broken, which it tells once', async () => {
    const { source, write, find, reports, path } = file(JSON.stringify({ agents: [entry('a')] }))
    await source.open?.()
    write(JSON.stringify({ agents: [entry('a'), entry('b')] }))
    expect(await find()).toEqual([peerIdNamed('a'), peerIdNamed('b')])
    write('agents: [{ agent_id: a, key: half of a ke')
    expect(await find()).toEqual([peerIdNamed('a'), peerIdNamed('b')])
    expect(await find()).toHaveLength(2)
    expect(reports).toHaveLength(1)
    expect(reports[0]).toMatch(/changed file is not used.*neither YAML nor JSON/)
    rmSync(path)
    expect(await find()).toHaveLength(2)
    expect(reports[1]).toMatch(/cannot be read: ENOENT/)
    write(JSON.stringify({ agents: [entry('b')] }))
    expect(await find()).toEqual([peerIdNamed('b')])
    expect(reports).toHaveLength(2)
  })

  it('is looked at once a second at most', async () => {
    const { source, write, clock } = file(JSON.stringify({ agents: [entry('a')] }))
    await source.open?.()
    write(JSON.stringify({ agents: [] }))
    const count = async () => {
      let found = 0
      for await (const _ of source.find('work', { signal: new AbortController().signal })) found++
      return found
    }
    expect(await count()).toBe(1)
    await clock.timeline.advance(1000)
    expect(await count()).toBe(0)
  })

  const many = JSON.stringify({ agents: Array.from({ length: 10_001 }, (_, at) => entry(`a${at}`, { key: key('a') })) })
  const bomb = [
    'a: &a [x, x, x, x, x, x, x, x, x]',
    ...'bcdefgh'.split('').map((name, at) => `${name}: &${name} [${Array(9).fill(`*${'abcdefg'[at]}`).join(', ')}]`),
    'agents: *h',
  ].join('\n')
  it.each<[string, string, RegExp]>([
    ['no list', '{}', /agents must be a list/],
    ['empty', '', /agents must be a list/],
    ['UTF-16', Buffer.from('\uFEFF{"agents": []}', 'utf16le').toString('latin1'), /agents must be|neither YAML/],
    ['a text as entry', 'agents: [a]', /agents\[0\] is not an object/],
    ['a number as id', 'agents: [{ agent_id: 0123 }]', /agents\[0\]\.agent_id: "\d+" is not a valid agent_id/],
    ['a name in Chinese', JSON.stringify({ agents: [entry('审查')] }), /agents\[0\]\.agent_id: "\\u5ba1\\u67e5"/],
    ['no key', JSON.stringify({ agents: [entry('a', { key: undefined })] }), /agents\[0\] needs "peer_id" or "key"/],
    [
      'a fingerprint',
      JSON.stringify({ agents: [entry('a', { key: keyNamed('a').publicKey.fingerprint })] }),
      /is a fingerprint/,
    ],
    [
      'another peer id',
      JSON.stringify({ agents: [entry('a', { peer_id: peerIdNamed('b') })] }),
      /peer_id that is not that of its key/,
    ],
    [
      'host and port',
      JSON.stringify({ agents: [entry('a', { addresses: ['10.0.0.7:4001'] })] }),
      /addresses\[0\] is not a multiaddr/,
    ],
    [
      'no address',
      JSON.stringify({ agents: [entry('a', { addresses: [] })] }),
      /addresses must be a list that is not empty/,
    ],
    [
      'no capability',
      JSON.stringify({ agents: [entry('a', { capabilities: undefined })] }),
      /capabilities must be a list/,
    ],
    [
      'yes as capability',
      'agents: [{ agent_id: a, capabilities: [1.10], addresses: [/ip4/1.2.3.4/tcp/1], peer_id: ' +
        peerIdNamed('a') +
        ' }]',
      /capabilities\[0\] is not a text/,
    ],
    [
      'a field misspelt',
      JSON.stringify({ agents: [entry('a', { adresses: [] })] }),
      /agents\[0\]\.adresses is not known/,
    ],
    ['an agent twice', JSON.stringify({ agents: [entry('a'), entry('a')] }), /agents\[1\]\.agent_id repeats a/],
    ['too many agents', many, /over 10000 entries/],
    ['aliases that stand for gigabytes', bomb, /neither YAML nor JSON: .*alias/i],
  ])('that has %s is refused at the start, naming the place', async (_, text, message) => {
    const { source } = file(text)
    await expect(source.open?.()).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringMatching(message),
    })
  })

  it('that is a folder, or is not there, is refused at the start', async () => {
    const { folder } = file('agents: []')
    for (const path of [folder, join(folder, 'missing.yaml')]) {
      await expect(staticDirectory(path)(contextOf('me')).open?.()).rejects.toMatchObject({
        code: 'INVALID_OPTION',
        message: expect.stringContaining('cannot be read'),
      })
    }
  })
})
