import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { seededRandom } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import { generatePreSharedKey, loadPreSharedKey } from '../../src/identity/pre-shared-key.ts'
import { caught, pathBelowAFile, temporaryFolder } from './support.ts'

const fresh = () => join(temporaryFolder(), '网络.key')
const fileOf = (content: string): string => {
  const path = fresh()
  writeFileSync(path, content, { mode: 0o600 })
  return path
}
const HEAD = '/key/swarm/psk/1.0.0/\n/base16/\n'
const DIGITS = '00112233445566778899aabbccddeeff'.repeat(2)

describe('a pre-shared key', () => {
  it('is made with mode 0600 in the form that other libp2p implementations read', () => {
    const path = fresh()
    generatePreSharedKey(path)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(readFileSync(path, 'utf8')).toMatch(/^\/key\/swarm\/psk\/1\.0\.0\/\n\/base16\/\n[0-9a-f]{64}\n$/)
    expect(Buffer.from(loadPreSharedKey(path)).toString('hex')).toBe(readFileSync(path, 'utf8').split('\n')[2])
  })

  it('differs from one to the next', () => {
    const [one, other] = [fresh(), fresh()]
    generatePreSharedKey(one, seededRandom(1))
    generatePreSharedKey(other, seededRandom(2))
    expect(loadPreSharedKey(one)).not.toEqual(loadPreSharedKey(other))
  })

  it('never replaces a file that is there', () => {
    const path = fresh()
    generatePreSharedKey(path)
    const before = loadPreSharedKey(path)
    const error = caught(() => generatePreSharedKey(path))
    expect(error.code).toBe('STORAGE_FAILED')
    expect(error.message).toContain(path)
    expect(loadPreSharedKey(path)).toEqual(before)
  })

  it('says so where none can be written', () => {
    expect(caught(() => generatePreSharedKey(pathBelowAFile())).code).toBe('STORAGE_FAILED')
  })

  it.each([
    ['as it was made elsewhere, without a last line end', `${HEAD}${DIGITS}`],
    [
      'with line ends and byte order mark of Windows',
      `\uFEFF${HEAD.replaceAll('\n', '\r\n')}${DIGITS.toUpperCase()}\r\n`,
    ],
  ])('is read %s', (_, content) => {
    expect(Buffer.from(loadPreSharedKey(fileOf(content))).toString('hex')).toBe(DIGITS)
  })

  it.each([
    ['empty', ''],
    ['cut off', `${HEAD}${DIGITS.slice(2)}`],
    ['too long', `${HEAD}${DIGITS}00`],
    ['without its head', DIGITS],
    ['with a letter that is no digit', `${HEAD}${DIGITS.slice(1)}g`],
    ['in base64', `${HEAD.replace('base16', 'base64')}${DIGITS}`],
  ])('is refused when it is %s', (_, content) => {
    const path = fileOf(content)
    const error = caught(() => loadPreSharedKey(path))
    expect(error.code).toBe('INVALID_KEY_FILE')
    expect(error.message).toContain(path)
    // What the file does hold is nobody's business.
    expect(error.message).not.toContain(DIGITS.slice(2, 20))
  })

  it.each([0o640, 0o604, 0o666])('is refused with mode %o', (mode) => {
    const path = fileOf(`${HEAD}${DIGITS}`)
    chmodSync(path, mode)
    const error = caught(() => loadPreSharedKey(path))
    expect(error.code).toBe('KEY_FILE_EXPOSED')
    expect(error.message).toMatch(/^preSharedKey: /)
  })

  it('is refused when there is none', () => {
    expect(caught(() => loadPreSharedKey(fresh())).code).toBe('INVALID_KEY_FILE')
  })
})
