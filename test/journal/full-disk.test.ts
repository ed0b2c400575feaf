import { existsSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createDiskJournal, type HermesError, type Journal } from 'hermes-peer'
import { describe, expect, it, onTestFinished } from 'vitest'
import { temporaryFolder } from '../calls/support/team.ts'
import { numberedCommit, numbersIn } from './support/numbered.ts'
import { launchJournal } from './support/process.ts'
import { mountTmpfs, type Tmpfs, tmpfsRefusal } from './support/tmpfs.ts'

const MIB = 1024 * 1024
/** Less than nothing: no commit is refused before it is tried. */
const NEVER_ASK = -1024 * MIB
const refusal = tmpfsRefusal()
const suite =
  refusal === undefined ? 'a full disk (tmpfs)' : `a full disk: skipped, no tmpfs can be mounted (${refusal})`

/** Leaves that many bytes free. */
function fill({ folder }: Tmpfs, free: number): void {
  const { bavail, bsize } = statfsSync(folder)
  writeFileSync(join(folder, 'filler'), Buffer.alloc(Math.max(0, bavail * bsize - free)))
}

const empty = ({ folder }: Tmpfs): void => rmSync(join(folder, 'filler'), { force: true })

async function opened(folder: string, journalSpareBytes: number): Promise<Journal> {
  const journal = createDiskJournal({ folder, limits: { journalSpareBytes } })
  await journal.open()
  return journal
}

/** Commits from that number on until one is refused; tells the refusal. */
async function untilRefused(journal: Journal, from: number): Promise<{ error: HermesError; refused: number }> {
  for (let number = from; number < from + 500; number++) {
    try {
      await journal.commit(numberedCommit(number))
    } catch (error) {
      return { error: error as HermesError, refused: number }
    }
  }
  throw new Error('nothing was refused')
}

describe.skipIf(refusal !== undefined)(suite, () => {
  it('refuses commits before the last room is gone, goes on reading, and takes them again once there is room', async () => {
    const disk = mountTmpfs(8)
    onTestFinished(() => disk.dispose())
    const folder = join(disk.folder, 'journal')
    const journal = await opened(folder, MIB)
    for (const number of [0, 1, 2]) await journal.commit(numberedCommit(number))
    fill(disk, MIB)
    const { error, refused } = await untilRefused(journal, 3)
    expect(error).toMatchObject({ code: 'STORAGE_FAILED', hint: expect.stringContaining('Free some space') })
    expect(error.message).toContain(folder)
    expect(error.message).toMatch(/\d MiB are free on its disk, \d+\.\d MiB are needed/)
    await expect(journal.commit(numberedCommit(refused))).rejects.toMatchObject({ code: 'STORAGE_FAILED' })
    expect(await numbersIn(journal)).toEqual(Array.from({ length: refused }, (_, number) => number))
    empty(disk)
    await journal.commit(numberedCommit(refused + 1))
    await journal.close()
    const next = await opened(folder, MIB)
    expect(await numbersIn(next)).toEqual([...Array(refused).keys(), refused + 1])
    await next.close()
  })

  // As when the room goes between the question and the write: LevelDB fails, in the log, where a table is written, or at opening.
  it.each([0, 10_000, 60_000, 200_000, 500_000])(
    'stores nothing of what LevelDB failed to write, and what it takes later outlives a kill (%i bytes free)',
    async (free) => {
      const disk = mountTmpfs(8)
      onTestFinished(() => disk.dispose())
      const folder = join(disk.folder, 'journal')
      const process = await launchJournal({ folder, spareBytes: NEVER_ASK })
      onTestFinished(() => process.kill())
      expect(await process.ask({ open: true })).toEqual({})
      const stored: number[] = []
      const refused: number[] = []
      const commit = async (number: number): Promise<boolean> => {
        const { error } = await process.ask({ commit: number })
        if (error) {
          expect(error).toMatchObject({ code: 'STORAGE_FAILED', message: expect.stringContaining(folder) })
          expect(error.message).toMatch(/no space is left on its disk/)
        }
        ;(error ? refused : stored).push(number)
        return error === undefined
      }
      let number = 0
      for (let round = 0; round < 3; round++) {
        while (number % 10 !== 9) await commit(number++)
        fill(disk, free)
        for (let tries = 0; tries < 40 && refused.length < 2 * (round + 1); tries++) await commit(number++)
        empty(disk)
        while (!(await commit(number++))) expect(refused.length).toBeLessThan(100)
        await commit(number++)
      }
      expect(refused.length).toBeGreaterThanOrEqual(6)
      await process.kill()
      const next = await opened(folder, 1)
      expect(await numbersIn(next)).toEqual(stored)
      await next.close()
    },
  )

  it('says so when there is no room to begin with, and begins once there is', async () => {
    const disk = mountTmpfs(2)
    onTestFinished(() => disk.dispose())
    const folder = join(disk.folder, 'journal')
    fill(disk, 0)
    await expect(opened(folder, 1)).rejects.toMatchObject({
      code: 'STORAGE_FAILED',
      message: expect.stringMatching(/journal: .*no space is left on its disk|MiB are free/),
    })
    empty(disk)
    const journal = await opened(folder, 1)
    await journal.commit(numberedCommit(0))
    await journal.close()
  })
})

describe('a file that may not grow (ulimit -f)', () => {
  it('is refused in the middle of a record; the next commits go into a new log and outlive a kill', async () => {
    const folder = join(temporaryFolder(), 'journal')
    onTestFinished(() => rmSync(join(folder, '..'), { recursive: true }))
    const process = await launchJournal({ folder, fileBlocks: 400 })
    onTestFinished(() => process.kill())
    expect(await process.ask({ open: true })).toEqual({})
    const stored: number[] = []
    const refused: number[] = []
    for (let number = 0; refused.length === 0 || number < (refused[0] as number) + 4; number++) {
      const { error } = await process.ask({ commit: number })
      if (error) {
        expect(error).toMatchObject({ code: 'STORAGE_FAILED', hint: expect.stringContaining('ulimit -f') })
      }
      ;(error ? refused : stored).push(number)
      expect(number).toBeLessThan(100)
    }
    expect(refused).toHaveLength(1)
    await process.kill()
    expect(existsSync(join(folder, 'CURRENT')), readdirSync(folder).join()).toBe(true)
    const next = await opened(folder, 1)
    expect(await numbersIn(next)).toEqual(stored)
    await next.close()
  })
})
