import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
// @ts-expect-error plain JavaScript, which runs before anything is installed
import { firstDifference } from '../.ci/installed.mjs'
// @ts-expect-error plain JavaScript, which runs before anything is installed
import { takeLock } from '../.ci/lock.mjs'

const CI = fileURLToPath(new URL('../.ci', import.meta.url))
const LINUX = { os: 'linux', cpu: 'x64', libc: 'glibc' }

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hermes-setup-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

describe('what is installed', () => {
  const wanted = {
    packages: {
      '': { name: 'root' },
      'node_modules/a': { version: '1.0.0', integrity: 'sha512-a' },
      'node_modules/linux': { version: '1.0.0', optional: true, os: ['linux'], cpu: ['x64'], libc: ['glibc'] },
      'node_modules/musl': { version: '1.0.0', optional: true, os: ['linux'], cpu: ['x64'], libc: ['musl'] },
      'node_modules/mac': { version: '1.0.0', optional: true, os: ['darwin'] },
      'node_modules/not-windows': { version: '1.0.0', optional: true, os: ['!win32'] },
      'node_modules/for-wasm': { version: '1.0.0', optional: true },
      'node_modules/ours': { resolved: 'packages/ours', link: true },
    },
  }
  const complete = {
    'node_modules/a': { version: '1.0.0', integrity: 'sha512-a' },
    'node_modules/linux': { version: '1.0.0' },
    'node_modules/not-windows': { version: '1.0.0' },
    'node_modules/ours': { resolved: 'packages/ours', link: true },
  }
  const without = (name: string) => Object.fromEntries(Object.entries(complete).filter(([path]) => path !== name))

  it('agrees with the lockfile when only packages of other platforms are missing', () => {
    expect(firstDifference(wanted, { packages: complete }, LINUX)).toBeUndefined()
  })

  it.each([
    ['nothing', undefined, 'nothing is installed'],
    ['a package less', { packages: without('node_modules/a') }, 'node_modules/a is missing'],
    ['the package of this platform less', { packages: without('node_modules/linux') }, 'node_modules/linux is missing'],
    [
      'a package for all but another platform less',
      { packages: without('node_modules/not-windows') },
      'node_modules/not-windows is missing',
    ],
    [
      'another version',
      { packages: { ...complete, 'node_modules/a': { version: '0.9.0' } } },
      'node_modules/a is 0.9.0, not 1.0.0',
    ],
    [
      'other content of the same version',
      { packages: { ...complete, 'node_modules/a': { version: '1.0.0', integrity: 'sha512-b' } } },
      'node_modules/a is 1.0.0, not 1.0.0',
    ],
    [
      'a package more',
      { packages: { ...complete, 'node_modules/b': { version: '1.0.0' } } },
      'node_modules/b is left over',
    ],
  ])('differs with %s', (_, present, difference) => {
    expect(firstDifference(wanted, present, LINUX)).toBe(difference)
  })
})

describe('the lock of the installation', () => {
  const path = () => join(folder, 'out', 'install.lock')

  it('lets one in at a time, and leaves nothing behind', async () => {
    const order: string[] = []
    const first = await takeLock(path())
    const second = takeLock(path(), { onWait: () => order.push('waits') }).then((lock: { release(): void }) => {
      order.push('second')
      lock.release()
    })
    while (order.length === 0) await new Promise((resolve) => setImmediate(resolve))
    order.push('first is done')
    first.release()
    await second
    expect(order).toEqual(['waits', 'first is done', 'second'])
    expect(readdirSync(join(folder, 'out'))).toEqual([])
  })

  it('gives up with the path of the lock when its holder never ends', async () => {
    const lock = await takeLock(path())
    await expect(takeLock(path(), { waitMs: 1 })).rejects.toThrow(path())
    lock.release()
  })

  it('passes on from a process that was killed', async () => {
    mkdirSync(join(folder, 'out'))
    writeFileSync(path(), '999999999')
    const lock = await takeLock(path(), { waitMs: 1_000 })
    lock.release()
  })

  it('stays with a child that outlives a killed holder', async () => {
    mkdirSync(join(folder, 'out'))
    writeFileSync(path(), `999999999 ${process.pid}`)
    await expect(takeLock(path(), { waitMs: 1 })).rejects.toThrow('still held')
  })

  it('passes on when nobody has touched it for long, whoever has that process id by now', async () => {
    mkdirSync(join(folder, 'out'))
    writeFileSync(path(), String(process.pid))
    const longAgo = new Date(Date.now() - 600_000)
    utimesSync(path(), longAgo, longAgo)
    const lock = await takeLock(path(), { waitMs: 1_000 })
    lock.release()
  })
})

describe('the setup', () => {
  const LOCKFILE = {
    name: 'x',
    lockfileVersion: 3,
    packages: { '': { name: 'x', dependencies: { a: '1.0.0' } }, 'node_modules/a': { version: '1.0.0' } },
  }

  /** Runs the setup of a checkout with that lockfile; resolves with exit code and output. */
  function setup(lockfile: object, options: { node?: string; env?: Record<string, string> } = {}) {
    cpSync(CI, join(folder, '.ci'), { recursive: true, filter: (source) => !source.endsWith('out') })
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'x', dependencies: { a: '1.0.0' } }))
    writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lockfile))
    const pretend = `Object.defineProperty(process.versions,'node',{value:'${options.node ?? process.versions.node}'})`
    const args = ['--import', `data:text/javascript,${encodeURIComponent(pretend)}`, join(folder, '.ci', 'setup.mjs')]
    const env = { ...process.env, npm_config_cache: join(folder, 'cache'), ...options.env }
    return new Promise<{ code: unknown; stdout: string; stderr: string }>((resolve) => {
      execFile(process.execPath, args, { env }, (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : error.code, stdout, stderr })
      })
    })
  }

  it('says nothing when everything is there', async () => {
    mkdirSync(join(folder, 'node_modules'))
    const present = { packages: { 'node_modules/a': { version: '1.0.0' } } }
    writeFileSync(join(folder, 'node_modules', '.package-lock.json'), JSON.stringify(present))
    expect(await setup(LOCKFILE)).toEqual({ code: 0, stdout: '', stderr: '' })
  })

  it.each(['20.19.9', '18.20.0'])('refuses Node %s in one sentence', async (node) => {
    const { code, stderr } = await setup(LOCKFILE, { node })
    expect(code).toBe(1)
    expect(stderr).toMatch(new RegExp(`^Hermes Peer needs Node 20\\.20 or newer; this is ${node} .*\\n$`))
  })

  it.each(['20.20.0', '22.0.0', '30.1.0'])('accepts Node %s', async (node) => {
    mkdirSync(join(folder, 'node_modules'))
    writeFileSync(join(folder, 'node_modules', '.package-lock.json'), JSON.stringify({ packages: {} }))
    expect(await setup({ lockfileVersion: 3, packages: { '': {} } }, { node })).toMatchObject({ code: 0, stderr: '' })
  })

  it('says in two lines that the registry cannot be reached', async () => {
    // Port 9 of loopback: nobody listens there.
    const { code, stdout, stderr } = await setup(LOCKFILE, {
      env: { npm_config_registry: 'http://127.0.0.1:9/', npm_config_fetch_retries: '0' },
    })
    expect(code).toBe(1)
    expect(stdout).toBe('')
    expect(stderr).toMatch(
      /^Installing dependencies \(.*\)…\nInstalling failed: npm cannot reach its registry \(ECONNREFUSED\)\. Check .*\n$/,
    )
  })
})

describe('the count of tests', () => {
  const file = (status: string, tests: number) => ({ status, assertionResults: Array.from({ length: tests }) })

  it.each([
    ['all passed', { numPassedTests: 3, numFailedTests: 0, testResults: [file('passed', 3)] }, 0, '3 0'],
    ['some failed', { numPassedTests: 2, numFailedTests: 1, testResults: [file('failed', 3)] }, 1, '2 1'],
    ['a file did not load', { numPassedTests: 2, numFailedTests: 0, testResults: [file('failed', 0)] }, 1, '2 1'],
    ['an error outside of the tests', { numPassedTests: 3, numFailedTests: 0, testResults: [] }, 1, '3 1'],
    ['no tests', { numPassedTests: 0, numFailedTests: 0, testResults: [] }, 0, '0 1'],
    ['no report', undefined, 1, '0 1'],
  ])('when %s', async (_, report, status, expected) => {
    const path = join(folder, 'report.json')
    if (report !== undefined) writeFileSync(path, JSON.stringify(report))
    const counted = await new Promise((resolve) => {
      execFile(process.execPath, [join(CI, 'count-tests.mjs'), path, String(status)], (_error, stdout) =>
        resolve(stdout),
      )
    })
    expect(counted).toBe(`${expected}\n`)
  })
})
