import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fileEpochStore, memoryEpochStore } from '../../src/identity/epoch.ts'
import { caught, pathBelowAFile, temporaryFolder } from './support.ts'

describe('the epoch', () => {
  it.each([
    ['in a file', () => fileEpochStore(join(temporaryFolder(), 'epoch'))],
    ['in memory', () => memoryEpochStore()],
  ])('%s is the wall clock, and one more than the last where that is not enough', (_, make) => {
    const store = make()
    expect(store.next(1000)).toBe(1000)
    expect(store.next(1000)).toBe(1001)
    expect(store.next(400)).toBe(1002)
    expect(store.next(5000)).toBe(5000)
  })

  it('rises with every life, whatever the clock does', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(2 ** 42), { minLength: 2, maxLength: 30 }), (clocks) => {
        const store = memoryEpochStore()
        const epochs = clocks.map((now) => store.next(now))
        for (const [index, epoch] of epochs.entries()) {
          expect(epoch).toBeGreaterThanOrEqual(clocks[index] as number)
          if (index > 0) expect(epoch).toBeGreaterThan(epochs[index - 1] as number)
        }
      }),
      { numRuns: 200 },
    )
  })

  it('outlives the process, in a file of mode 0600 that is stored before it is told', () => {
    const path = join(temporaryFolder(), 'epoch')
    const first = fileEpochStore(path).next(7000)
    expect(readFileSync(path, 'utf8').trim()).toBe(String(first))
    expect((statSync(path).mode & 0o777).toString(8)).toBe('600')
    expect(fileEpochStore(path).next(10)).toBe(first + 1)
  })

  it('leaves no temporary file behind', () => {
    const folder = temporaryFolder()
    fileEpochStore(join(folder, 'epoch')).next(1)
    expect(readdirSync(folder)).toEqual(['epoch'])
  })

  it.each([
    ['CRLF', '500\r\n'],
    ['a byte order mark', '\uFEFF500\n'],
    ['spaces', '  500 '],
    ['no line end', '500'],
  ])('is read with %s', (_, text) => {
    const path = join(temporaryFolder(), 'epoch')
    writeFileSync(path, text)
    expect(fileEpochStore(path).next(1)).toBe(501)
  })

  it.each([
    ['nothing', ''],
    ['a word', 'yesterday'],
    ['a negative number', '-5'],
    ['a fraction', '5.5'],
    ['an exponent', '1e12'],
    ['Chinese digits', '一二三'],
    ['full-width digits', '１２３'],
    ['more than a number can tell', '99999999999999999999'],
    ['the last safe integer, after which there is no next', String(Number.MAX_SAFE_INTEGER)],
  ])('refuses a file with %s, and says how to mend it', (_, text) => {
    const path = join(temporaryFolder(), 'epoch')
    writeFileSync(path, text)
    const error = caught(() => fileEpochStore(path).next(1000))
    expect(error.code).toBe('STORAGE_FAILED')
    expect(error.message).toContain(path)
    expect(error.hint).toMatch(/number/)
    expect(readFileSync(path, 'utf8'), 'never overwritten by a guess').toBe(text)
  })

  it('refuses a folder in its place', () => {
    const path = join(temporaryFolder(), 'epoch')
    mkdirSync(path)
    expect(caught(() => fileEpochStore(path).next(1)).code).toBe('STORAGE_FAILED')
  })

  it('is not told when it cannot be stored', () => {
    const path = pathBelowAFile()
    const error = caught(() => fileEpochStore(path).next(1))
    expect(error.code).toBe('STORAGE_FAILED')
    expect(error.message).toContain(path)
  })
})
