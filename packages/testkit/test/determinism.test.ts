import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it, vi } from 'vitest'
import { busyScenario } from './support/busy-scenario.ts'

const SOURCE = new URL('../src/', import.meta.url)
/** What would let a run depend on the machine it runs on. */
const HOST =
  /\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b|\bperformance\.|\bhrtime\b|\bset(Timeout|Interval)\b|\brandom(Bytes|UUID|FillSync|Int)\b|\bcrypto\.(subtle|getRandomValues)\b|\blocaleCompare\b|\bAbortSignal\.(timeout|any)\b/

describe('a busy world of 20 peers', () => {
  it('runs the same way for the same seed, and another way for another', async () => {
    const first = await busyScenario(1)
    // The second time beside another world, as tests may run.
    const [again, second] = await Promise.all([busyScenario(1), busyScenario(2)])
    expect(again).toEqual(first)
    expect(second.hash).not.toBe(first.hash)
    for (const { events, bytes, pending } of [first, second]) {
      expect(events).toBeGreaterThan(3_000)
      expect(bytes).toBeGreaterThan(1_000_000)
      expect(pending).toBe(0)
    }
    for (const [kind, count] of Object.entries(first.hits)) expect(`${kind} ${count}`).not.toBe(`${kind} 0`)
  })

  it('asks the machine for neither time nor randomness', async () => {
    const asked: string[] = []
    const spy = (holder: object, name: string) => {
      const original = (holder as Record<string, (...args: unknown[]) => unknown>)[name] as (
        ...args: unknown[]
      ) => unknown
      vi.spyOn(holder as Record<string, () => unknown>, name).mockImplementation(function (
        this: unknown,
        ...args: unknown[]
      ) {
        // The test runner may ask; what counts is who of ours does.
        if (new Error().stack?.includes('/testkit/')) asked.push(name)
        return original.apply(this, args)
      } as () => unknown)
    }
    spy(Date, 'now')
    spy(Math, 'random')
    spy(performance, 'now')
    for (const name of ['setTimeout', 'setInterval']) spy(globalThis, name)
    try {
      Date.now()
      expect(asked).toEqual(['now'])
      await busyScenario(1)
      expect(asked).toEqual(['now'])
    } finally {
      vi.restoreAllMocks()
    }
  })
})

describe('the source', () => {
  it('names nothing that depends on the machine', () => {
    // What any implementation has to do is shown on real ones too, in real time.
    const files = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' }).filter(
      (file) => file.endsWith('.ts') && !file.startsWith('compliance/'),
    )
    expect(files.length).toBeGreaterThan(20)
    const found = files.flatMap((file) =>
      withoutComments(readFileSync(new URL(file, SOURCE), 'utf8'))
        .split('\n')
        .filter((line) => HOST.test(line))
        .map((line) => `${file}: ${line.trim()}`),
    )
    expect(found).toEqual([])
    expect(HOST.test('const at = Date.now()')).toBe(true)
  })
})

function withoutComments(source: string): string {
  return source.replace(/\/\*[\s\S]*?\*\//g, '').replace(/\/\/.*$/gm, '')
}
