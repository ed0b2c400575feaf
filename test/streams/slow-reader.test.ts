import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTeam } from '../calls/support/team.ts'
import { eventually } from '../hostile/eventually.ts'
import { byTier, PATIENCE_MS } from '../hostile/tier.ts'
import { program } from '../programs/program.ts'
import { echo, figures, PAGE, pages } from './support/contracts.ts'
import { resident } from './support/memory.ts'

const CHUNKS = byTier({ test: 4000, ci: 20_000, long: 20_000 })
const PER_SECOND = 1000
const MiB = 1024 * 1024
/** In the short run the buffer is smaller with the count, so that it fills; less would leave no room for what is on its way. */
const BUFFER = byTier({ test: 2.5 * MiB, ci: 4 * MiB, long: 4 * MiB })
const tuning = { streamBufferBytes: BUFFER }

const team = createTeam({ tuning })
let writer: ChildProcess | undefined
beforeAll(async () => {
  writer = fork(
    await program('test/streams/support/writer'),
    [JSON.stringify({ agentId: 'writer', folder: team.folder, tuning })],
    { execArgv: [], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] },
  )
  await once(writer, 'message')
})
afterAll(async () => {
  await team.stop()
  writer?.kill('SIGKILL')
})

const percentile = (sorted: readonly number[], share: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] as number

describe('F-20 slow reader: memory growth or silent loss, over TCP between two processes', () => {
  it(
    `${CHUNKS} chunks of 1 KB to a reader of ${PER_SECOND} a second: the writer waits, memory stays, other calls go on`,
    async () => {
      const reader = await team.start('reader')
      // What a fast reader takes is no growth: the code, and the garbage of so much data.
      for await (const page of reader.stream(pages, { count: CHUNKS / 4 })) expect(page).toBe(PAGE)
      await reader.call(figures, null)
      const own = resident()
      const latencies: number[] = []
      let reading = true
      const calls = (async () => {
        while (reading) {
          const since = performance.now()
          await reader.call(echo, latencies.length)
          latencies.push(performance.now() - since)
          await new Promise((resolve) => setTimeout(resolve, 20))
        }
      })()
      let paused = false
      const watch = reader.events.on('stream.flow', (flow) => {
        if (flow.side === 'reader' && flow.paused) paused = true
      })
      const stream = reader.stream(pages, { count: CHUNKS })
      let began = performance.now()
      let read = 0
      /** How far ahead of its reader the writer was in the middle of it. */
      let ahead = 0
      for await (const text of stream) {
        if (text !== PAGE) throw new Error(`page ${read} is another one`)
        read++
        if (read === 50) {
          // However slow the writer is on a busy machine: the reader stands still until its buffer is full.
          await eventually(() => paused, 'the writer to be told to pause', PATIENCE_MS)
          began = performance.now() - (read / PER_SECOND) * 1000
        }
        if (read === CHUNKS / 2) {
          const told = await reader.call(figures, null)
          ahead = told.made - read
          expect(told.pauses).toBeGreaterThanOrEqual(1)
          expect(told.growth).toBeLessThan(32 * MiB)
        }
        if (read % 50 !== 0) continue
        own.look()
        const due = began + (read / PER_SECOND) * 1000 - performance.now()
        if (due > 0) await new Promise((resolve) => setTimeout(resolve, due))
      }
      reading = false
      watch()
      await calls
      expect(await stream.result).toEqual({ made: CHUNKS })
      expect(read).toBe(CHUNKS)
      const told = await reader.call(figures, null)
      // What waits for the reader, one window, and one write: the writer has really waited.
      expect(ahead * 1024).toBeLessThan(BUFFER * 0.95 + 400 * 1024)
      expect(told.growth).toBeLessThan(32 * MiB)
      expect(own.growth()).toBeLessThan(32 * MiB)
      const sorted = latencies.sort((a, b) => a - b)
      const [p50, p99] = [0.5, 0.99].map((share) => percentile(sorted, share).toFixed(1))
      const grown = [own.growth(), told.growth].map((bytes) => (bytes / MiB).toFixed(1))
      console.info(
        `slow reader: RSS of the reader +${grown[0]} MiB, of the writer +${grown[1]} MiB; writer ${ahead} chunks ahead; other calls of that link: p50 ${p50} ms, p99 ${p99} ms of ${sorted.length}`,
      )
      expect(percentile(sorted, 0.5)).toBeLessThan(100)
    },
    PATIENCE_MS,
  )
})
