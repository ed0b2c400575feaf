import { rmSync } from 'node:fs'
import { seededRandom } from '@hermes-peer/testkit'
import { createDiskJournal } from 'hermes-peer'
import { describe, expect, it } from 'vitest'
import { temporaryFolder } from '../calls/support/team.ts'
import { numbersIn } from './support/numbered.ts'
import { launchJournal } from './support/process.ts'

const KILLS = 25

describe('kill -9 in the middle of acknowledged writes', () => {
  it(`loses nothing acknowledged and leaves nothing by halves, ${KILLS} times in a row on one journal`, async () => {
    const folder = temporaryFolder()
    const random = seededRandom('kill -9')
    let next = 0
    let acknowledged = 0
    let beyond = 0
    for (let round = 0; round < KILLS; round++) {
      const process = await launchJournal({ folder })
      expect(await process.ask({ open: true })).toEqual({})
      const enough = random.int(3, 16)
      const told: number[] = []
      await new Promise<void>((resolve) => {
        process.write(next, (number) => {
          told.push(number)
          if (told.length === enough) resolve()
        })
      })
      await process.kill()
      const journal = createDiskJournal({ folder, limits: { journalSpareBytes: 1 } })
      await journal.open()
      const stored = await numbersIn(journal)
      await journal.close()
      // In order and without gaps: what was stored unacknowledged follows on what was acknowledged.
      expect(stored).toEqual(Array.from({ length: stored.length }, (_, number) => number))
      expect(told.length).toBeGreaterThanOrEqual(enough)
      for (const number of told) expect(number).toBeLessThan(stored.length)
      acknowledged += told.length
      beyond += stored.length - next - told.length
      next = stored.length
    }
    expect(acknowledged).toBeGreaterThan(KILLS * 3)
    console.log(`${KILLS} kills: ${acknowledged} commits acknowledged, none lost; ${beyond} stored but not yet told`)
    rmSync(folder, { recursive: true })
  }, 90_000)
})
