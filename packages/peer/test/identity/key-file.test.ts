import { generateKeyPairSync } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { seededRandom } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import { loadKey, loadOrCreateKey, toPem } from '../../src/identity/key-file.ts'
import { systemRandom } from '../../src/random.ts'
import { caught, pathBelowAFile, temporaryFolder } from './support.ts'

const random = systemRandom()
const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)

/** A key file of its own with mode 0600 and any content. */
function fileOf(content: string | Uint8Array): string {
  const path = join(temporaryFolder(), 'key.pem')
  writeFileSync(path, content, { mode: 0o600 })
  return path
}

describe('a key file that does not exist', () => {
  it('is made with mode 0600, in folders of mode 0700', () => {
    const folder = join(temporaryFolder(), 'deep', 'er')
    const path = join(folder, 'key.pem')
    loadOrCreateKey(path, random)
    expect(modeOf(path)).toBe('600')
    expect(modeOf(folder)).toBe('700')
  })

  it('holds the key from then on', () => {
    const path = join(temporaryFolder(), 'key.pem')
    const made = loadOrCreateKey(path, random)
    const again = loadOrCreateKey(path, random)
    expect(again.publicKey.fingerprint).toBe(made.publicKey.fingerprint)
    expect(again.seed).toEqual(made.seed)
  })

  it('takes its seed from the injected random source, and differs from one to the next', () => {
    const of = (seed: number) => loadOrCreateKey(join(temporaryFolder(), 'key.pem'), seededRandom(seed))
    expect(of(1).publicKey.fingerprint).toBe(of(1).publicKey.fingerprint)
    expect(of(1).publicKey.fingerprint).not.toBe(of(2).publicKey.fingerprint)
  })

  it('is an error for loadKey', () => {
    const path = join(temporaryFolder(), 'missing.pem')
    const error = caught(() => loadKey(path))
    expect(error.code).toBe('INVALID_KEY_FILE')
    expect(error.message).toContain(path)
    expect(existsSync(path)).toBe(false)
  })

  it('below a file cannot be written, and says so', () => {
    const path = pathBelowAFile()
    const error = caught(() => loadOrCreateKey(path, random))
    expect(error.code).toBe('STORAGE_FAILED')
    expect(error.message).toContain(path)
  })
})

describe('the mode of a key file', () => {
  const withMode = (mode: number) => {
    const path = fileOf(toPem(random.bytes(32)))
    chmodSync(path, mode)
    return path
  }

  it.each([0o644, 0o640, 0o604, 0o660, 0o620, 0o610, 0o601, 0o777])('%o is refused', (mode) => {
    const path = withMode(mode)
    const error = caught(() => loadOrCreateKey(path, random))
    expect(error.code).toBe('KEY_FILE_EXPOSED')
    expect(error.message).toContain(mode.toString(8))
    expect(error.hint).toContain(`chmod 600 ${path}`)
    expect(modeOf(path), 'left as it was').toBe(mode.toString(8))
  })

  it.each([0o600, 0o400])('%o is accepted', (mode) => {
    expect(loadOrCreateKey(withMode(mode), random).publicKey.raw).toHaveLength(32)
  })

  it('is judged where a link leads', () => {
    const link = join(temporaryFolder(), 'link.pem')
    symlinkSync(withMode(0o644), link)
    expect(caught(() => loadOrCreateKey(link, random)).code).toBe('KEY_FILE_EXPOSED')
  })
})

describe('the content of a key file', () => {
  const pem = toPem(random.bytes(32))

  it.each([
    ['line feeds', pem],
    ['CRLF', pem.replaceAll('\n', '\r\n')],
    ['no line end at the end', pem.trimEnd()],
    ['empty lines around', `\n\n${pem}\n\n`],
    ['a byte order mark, as Notepad leaves it', `\uFEFF${pem}`],
  ])('with %s is the same key', (_, text) => {
    expect(loadKey(fileOf(text)).publicKey.fingerprint).toBe(loadKey(fileOf(pem)).publicKey.fingerprint)
  })

  const rsa = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey
  const x25519 = generateKeyPairSync('x25519').privateKey
  const ed = generateKeyPairSync('ed25519')
  it.each([
    ['nothing', ''],
    ['half of a key', pem.slice(0, 60)],
    ['an RSA key', rsa.export({ format: 'pem', type: 'pkcs8' })],
    ['an X25519 key', x25519.export({ format: 'pem', type: 'pkcs8' })],
    ['a public key', ed.publicKey.export({ format: 'pem', type: 'spki' })],
    [
      'an encrypted key',
      ed.privateKey.export({ format: 'pem', type: 'pkcs8', cipher: 'aes-256-cbc', passphrase: 'x' }),
    ],
    ['DER instead of PEM', ed.privateKey.export({ format: 'der', type: 'pkcs8' })],
    ['raw bytes', random.bytes(32)],
    ['UTF-16', Buffer.from(`\uFEFF${pem}`, 'utf16le')],
    ['中文', '这不是密钥'],
  ])('%s is refused, and stays as it is', (_, content) => {
    const path = fileOf(content)
    const before = readFileSync(path)
    const error = caught(() => loadOrCreateKey(path, random))
    expect(error.code).toBe('INVALID_KEY_FILE')
    expect(error.message).toContain(path)
    expect(error.details.field).toBe('identity')
    expect(readFileSync(path)).toEqual(before)
  })

  it('never stands in the error', () => {
    const path = fileOf(pem.replace('BEGIN PRIVATE KEY', 'BEGIN PRIVATE KEX'))
    const error = caught(() => loadKey(path))
    const secret = pem.split('\n')[1] as string
    expect(JSON.stringify([error.message, error.hint, error.details, String(error.cause)])).not.toContain(secret)
  })

  it('may not be a folder', () => {
    const path = join(temporaryFolder(), 'key.pem')
    mkdirSync(path, { mode: 0o700 })
    expect(caught(() => loadOrCreateKey(path, random)).code).toBe('INVALID_KEY_FILE')
  })
})
