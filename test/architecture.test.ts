import { describe, expect, it } from 'vitest'
import { LONG_LINES, TRANSPORT } from './architecture/layout.ts'
import { executionOrder, packageFolders, publicNames, readJson, readRepository } from './architecture/repository.ts'
import { violations } from './architecture/rules.ts'
import { readSource } from './architecture/source.ts'

interface Manifest {
  name: string
  private?: boolean
  sideEffects?: boolean | string[]
}

const files = readRepository()
const byPath = new Map(files.map((file) => [file.path, file]))

describe('the repository', () => {
  it('keeps to the arrows between packages and stages', () => {
    expect(violations(files)).toEqual([])
  })

  it(`lists the files of ${LONG_LINES} lines and more`, () => {
    const long = files.filter((file) => file.lines >= LONG_LINES).sort((a, b) => b.lines - a.lines)
    if (long.length > 0) console.info(long.map((file) => `${file.lines} lines: ${file.path}`).join('\n'))
    expect(files.length).toBeGreaterThan(0)
  })

  it('exports from its packages the names that are written down, and no others', async () => {
    const lines = packageFolders()
      .filter((folder) => folder.startsWith('packages/'))
      .flatMap((folder) => {
        const manifest = readJson(`${folder}/package.json`) as Manifest
        if (manifest.private === true) return []
        return publicNames(`${folder}/src/index.ts`, byPath).map((one) => `${manifest.name} ${one.kind} ${one.name}`)
      })
    expect(new Set(lines).size).toBe(lines.length)
    // A wanted change: `npx vitest run test/architecture.test.ts -u`.
    await expect(`${lines.sort().join('\n')}\n`).toMatchFileSnapshot('./architecture/exports.txt')
  })

  it('installs one copy of @libp2p/interface', () => {
    const { packages } = readJson('package-lock.json') as { packages: Record<string, unknown> }
    const copies = Object.keys(packages).filter((path) => path.endsWith('node_modules/@libp2p/interface'))
    expect(copies).toEqual(['node_modules/@libp2p/interface'])
  })
})

describe('the polyfill', () => {
  it('is kept by bundlers', () => {
    const { sideEffects } = readJson('packages/peer/package.json') as Manifest
    expect(sideEffects).toEqual([
      './src/network/polyfill.ts',
      './dist/network/polyfill.js',
      './src/dispose-polyfill.ts',
      './dist/dispose-polyfill.js',
    ])
    expect(byPath.has('packages/peer/src/network/polyfill.ts')).toBe(true)
  })

  it.each(['packages/peer/src/network/libp2p/index.ts', 'packages/peer/src/index.ts'])(
    'runs before libp2p does, when %s is imported',
    (entry) => {
      const order = executionOrder(entry, byPath)
      const polyfill = order.indexOf('packages/peer/src/network/polyfill.ts')
      const libp2p = order.findIndex((module) => TRANSPORT.test(module))
      expect(libp2p).toBeGreaterThan(-1)
      expect(polyfill).toBeGreaterThan(-1)
      expect(polyfill).toBeLessThan(libp2p)
    },
  )
})

describe('the checker', () => {
  const judge = (path: string, text: string) => violations([readSource(path, text)])

  it.each([
    ['packages/protocol/src/a.ts', `import { x } from 'hermes-peer'`, 'no package of ours'],
    ['packages/protocol/src/a.ts', `import net from 'node:net'`, 'protocol is pure'],
    ['packages/protocol/src/a.ts', `const fs = await import('node:fs')`, 'protocol is pure'],
    ['packages/protocol/src/a.ts', `import { randomBytes } from 'node:crypto'`, 'chance comes from Random'],
    ['packages/protocol/src/a.ts', 'export const now = () => Date.now()', 'uses Date.now'],
    ['packages/protocol/src/a.ts', 'export const date = new Date()', 'uses new Date()'],
    ['packages/protocol/src/a.ts', 'export const home = process.env.HOME', 'uses process.env'],
    ['packages/protocol/src/a.ts', `import { key } from '@libp2p/crypto'`, 'knows libp2p'],
    ['packages/peer/src/calls/a.ts', `import { testNetwork } from '@hermes-peer/testkit'`, 'may import'],
    ['packages/peer/src/link/a.ts', `import { multiaddr } from '@multiformats/multiaddr'`, 'knows libp2p'],
    ['packages/peer/src/link/a.ts', `import type { PeerId } from '@libp2p/interface'`, 'knows libp2p'],
    ['packages/peer/src/directory/a.ts', `import { CID } from 'multiformats/cid'`, 'encodings of libp2p'],
    ['packages/peer/src/link/a.ts', `import { createInbox } from '../delivery/inbox.ts'`, 'stands above'],
    ['packages/peer/src/link/a.ts', `import type { Inbox } from '../delivery/inbox.ts'`, 'stands above'],
    ['packages/peer/src/network/a.ts', `export { call } from '../calls/call.ts'`, 'stands above'],
    ['packages/peer/src/identity/a.ts', `import { link } from '../link/link.ts'`, 'beside the way'],
    ['packages/peer/src/directory/a.ts', `import { call } from '../calls/call.ts'`, 'beside the way'],
    ['packages/peer/src/link/a.ts', `import type { Directory } from '../directory/directory.ts'`, 'not the other way'],
    ['packages/peer/src/calls/a.ts', `import { createPeer } from '../create-peer.ts'`, 'are for everyone'],
    ['packages/peer/src/defaults.ts', `import { link } from './link/link.ts'`, 'must not know the stages'],
    ['packages/peer/src/helpers/a.ts', `import { link } from '../link/link.ts'`, 'is no stage'],
    ['packages/peer/src/link/a.ts', `import { readFileSync } from 'node:fs'`, 'touch the disk'],
    ['packages/peer/src/link/a.ts', `import { connect } from 'node:net'`, 'opens sockets'],
    ['packages/peer/src/link/a.ts', 'setTimeout(run, 5)', 'uses setTimeout'],
    ['packages/peer/src/link/a.ts', 'const signal = AbortSignal.timeout(5)', 'uses AbortSignal.timeout'],
    ['packages/peer/src/link/a.ts', 'const jitter = Math.random()', 'uses Math.random'],
    ['packages/peer/src/link/a.ts', `import { randomUUID } from 'node:crypto'`, 'chance comes from Random'],
    ['packages/testkit/src/a.ts', `import { x } from '../../peer/src/link/link.ts'`, 'inside its package'],
    ['packages/testkit/src/a.ts', `import { x } from 'hermes-peer/src/link/link.ts'`, 'only the public entry'],
    ['packages/unheard-of/src/a.ts', `import { x } from 'hermes-peer'`, 'has no arrows yet'],
    ['examples/dev-team/src/a.ts', `import { x } from '@hermes-peer/protocol/src/ids.ts'`, 'only the public entry'],
    ['examples/new/src/a.ts', `import { x } from '@hermes-peer/bench'`, 'may import'],
    ['examples/dev-team/src/a.ts', `type X = import('libp2p').Libp2p`, 'knows libp2p'],
  ])('objects to a planted fault: in %s, %j', (path, text, why) => {
    expect(judge(path, text).join('\n')).toContain(why)
  })

  it('objects to a file that is too long', () => {
    expect(judge('packages/peer/src/link/a.ts', 'a()\n'.repeat(500))).toEqual([])
    expect(judge('packages/peer/src/link/a.ts', 'a()\n'.repeat(501)).join()).toContain('has 501 lines')
  })

  it.each([
    ['packages/protocol/src/a.ts', `import { sign } from 'node:crypto'\nconst at = new Date(5)`],
    ['packages/protocol/src/a.ts', `import { base58btc } from 'multiformats/bases/base58'`],
    ['packages/protocol/src/a.ts', `const clock = { setTimeout: 1 }\nclock.setTimeout`],
    [
      'packages/peer/src/calls/a.ts',
      `import { rank } from '../routing/rank.ts'\nimport { send } from '../link/link.ts'`,
    ],
    ['packages/peer/src/link/a.ts', `import type { Candidate } from '../routing/query.ts'`],
    [
      'packages/peer/src/link/a.ts',
      `import { trust } from '../identity/trust.ts'\nimport { LIMIT } from '../defaults.ts'`,
    ],
    ['packages/peer/src/directory/a.ts', `import type { Links } from '../link/links.ts'`],
    ['packages/peer/src/routing/a.ts', `import type { Directory } from '../directory/directory.ts'`],
    ['packages/peer/src/create-peer.ts', `import { calls } from './calls/calls.ts'\nimport { peer } from './peer.ts'`],
    ['packages/peer/src/network/libp2p/a.ts', `import { createLibp2p } from 'libp2p'\nsetTimeout(run, 5)`],
    ['packages/peer/src/random.ts', `import { randomFillSync } from 'node:crypto'\nMath.random()`],
    ['packages/peer/test/a.test.ts', `import { testNetwork } from '@hermes-peer/testkit'\nimport 'libp2p'`],
    ['examples/dev-team/src/a.ts', `import { createPeer } from 'hermes-peer'\nsetTimeout(run, 5)`],
  ])('lets pass what is right: in %s, %j', (path, text) => {
    expect(judge(path, text)).toEqual([])
  })

  it('sees through `export *` and tells types from values', () => {
    const map = new Map(
      [
        readSource('p/index.ts', `export * from './a.ts'\nexport { b, type C } from './b.ts'`),
        readSource('p/a.ts', 'export interface A {}\nexport const a = 1\nexport function f() {}\nconst hidden = 2'),
      ].map((file) => [file.path, file]),
    )
    const names = publicNames('p/index.ts', map).map((one) => `${one.kind} ${one.name}`)
    expect(names).toEqual(['type A', 'value a', 'value f', 'value b', 'type C'])
  })

  it('knows that a module runs after what it imports, and that types do not run', () => {
    const map = new Map(
      [
        readSource('p/index.ts', `import type { T } from 'libp2p'\nimport './a.ts'\nimport './polyfill.ts'`),
        readSource('p/a.ts', `import { createLibp2p } from 'libp2p'`),
        readSource('p/polyfill.ts', ''),
      ].map((file) => [file.path, file]),
    )
    expect(executionOrder('p/index.ts', map)).toEqual(['libp2p', 'p/a.ts', 'p/polyfill.ts', 'p/index.ts'])
  })
})
