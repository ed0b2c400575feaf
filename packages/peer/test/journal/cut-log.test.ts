import { appendFileSync, cpSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { cutGroup } from '../../src/journal/disk/cut-log.ts'
import { createDiskJournal } from '../../src/journal/disk/disk-journal.ts'
import { groupMarkers } from '../../src/journal/disk/group-marker.ts'
import { readLog } from '../../src/journal/disk/log-file.ts'
import { temporaryFolder } from '../identity/support.ts'

const LIFE = new Uint8Array(8).fill(7)
const MARKERS = groupMarkers(LIFE)
const LOG = '000003.log'

/** A folder as it is while LevelDB has it open, with groups 1 to 4 in its log: each sets its own key. */
async function folderWithGroups(): Promise<string> {
  const root = temporaryFolder()
  const folder = join(root, 'journal')
  const random = { bytes: (length: number) => LIFE.slice(0, length), next: () => 0 }
  const journal = createDiskJournal({ folder, limits: { journalSpareBytes: 1 }, random })
  await journal.open()
  onTestFinished(() => journal.close())
  for (const number of [1, 2, 3, 4]) {
    await journal.commit([{ table: 'tasks', key: String(number), value: new Uint8Array(number === 4 ? 50_000 : 10) }])
  }
  const copy = join(root, 'copy')
  mkdirSync(copy, { mode: 0o700 })
  cpSync(folder, copy, { recursive: true })
  return copy
}

async function keysIn(folder: string): Promise<string[]> {
  const journal = createDiskJournal({ folder, limits: { journalSpareBytes: 1 } })
  await journal.open()
  const keys: string[] = []
  for await (const [key] of journal.entries('tasks')) keys.push(key)
  await journal.close()
  return keys
}

const logOf = (folder: string) => join(folder, LOG)

describe('a group whose write failed', () => {
  it('is taken out of the log although all of it is there, as after a failed flush', async () => {
    const folder = await folderWithGroups()
    await cutGroup(folder, MARKERS, 4)
    expect(await keysIn(folder)).toEqual(['1', '2', '3'])
  })

  it('is taken out with what LevelDB wrote behind it when it was closed', async () => {
    const folder = await folderWithGroups()
    appendFileSync(logOf(folder), Buffer.alloc(3000, 5))
    await cutGroup(folder, MARKERS, 4)
    expect(await keysIn(folder)).toEqual(['1', '2', '3'])
  })

  it.each([3, 20, 40_000])('is taken out when only its first %i bytes are there', async (size) => {
    const folder = await folderWithGroups()
    const file = readFileSync(logOf(folder))
    const start = readLog(file).records.at(-1)?.start as number
    writeFileSync(logOf(folder), file.subarray(0, start + size))
    await cutGroup(folder, MARKERS, 4)
    expect(statSync(logOf(folder)).size).toBe(start)
    expect(await keysIn(folder)).toEqual(['1', '2', '3'])
  })

  it('leaves the log as it is when nothing of it got there', async () => {
    const folder = await folderWithGroups()
    const before = readFileSync(logOf(folder))
    await cutGroup(folder, MARKERS, 5)
    expect(readFileSync(logOf(folder)).equals(before)).toBe(true)
    await cutGroup(folder, groupMarkers(new Uint8Array(8).fill(9)), 4)
    expect(await keysIn(folder)).toEqual(['1', '2', '3', '4'])
    rmSync(logOf(folder), { force: true })
    await cutGroup(folder, MARKERS, 4)
  })

  it('is not looked for behind damage: what had been stored stays there to be restored', async () => {
    const folder = await folderWithGroups()
    const file = readFileSync(logOf(folder))
    const second = readLog(file).records[2]?.start as number
    file[second + 8] = 0xff
    writeFileSync(logOf(folder), file)
    await expect(cutGroup(folder, MARKERS, 5)).rejects.toMatchObject({ code: 'JOURNAL_CORRUPT' })
    expect(readFileSync(logOf(folder)).equals(file)).toBe(true)
  })
})
