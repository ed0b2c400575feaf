import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'

const file = fileURLToPath(new URL('../../src/network/polyfill.ts', import.meta.url))

/** Runs a module in a fresh process, which has loaded nothing of libp2p. */
async function run(code: string): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', code])
  return stdout.trim()
}

describe('the polyfill of Promise.withResolvers', () => {
  it('makes promises that can be settled from outside', async () => {
    const out = await run(`
      delete Promise.withResolvers
      await import(${JSON.stringify(file)})
      class Own extends Promise {}
      const [kept, broken] = [Own.withResolvers(), Promise.withResolvers()]
      kept.resolve(1)
      broken.reject(2)
      const caught = await broken.promise.catch((reason) => reason)
      console.log(await kept.promise, caught, kept.promise instanceof Own, Object.keys(Promise).length)
    `)
    expect(out).toBe('1 2 true 0')
  })

  it('leaves a function that is there already alone', async () => {
    const out = await run(`
      Promise.withResolvers = 'own'
      await import(${JSON.stringify(file)})
      console.log(Promise.withResolvers)
    `)
    expect(out).toBe('own')
  })
})
