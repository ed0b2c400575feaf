import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDiskJournal } from '../../src/journal/disk/disk-journal.ts'
import { folderFault } from '../../src/journal/disk/inspect.ts'
import { readLog } from '../../src/journal/disk/log-file.ts'
import type { Journal } from '../../src/journal/journal.ts'

/** Groups in the log of the folders below, one commit each. */
const COMMITS = 6

let root: string
/** As a kill leaves it: a table of an earlier life, and a log with commits. */
let killed: string
/** The same after an orderly close. */
let closed: string

const name = (number: number, half: string) => `${number}-${half}`
const value = (number: number) => new TextEncoder().encode(`value ${number}`)

async function commit(journal: Journal, number: number): Promise<void> {
  await journal.commit(
    ['left', 'right'].map((half) => ({ table: 'tasks', key: name(number, half), value: value(number) })),
  )
}

/** Numbers of the commits that are there; throws for half of one. */
async function commitsIn(folder: string): Promise<number[]> {
  const journal = createDiskJournal({ folder, limits: { journalSpareBytes: 1 } })
  await journal.open()
  const found = new Map<number, string[]>()
  for await (const [key, bytes] of journal.entries('tasks')) {
    const [number = '', half = ''] = key.split('-')
    expect(new Uint8Array(bytes)).toEqual(value(Number(number)))
    found.set(Number(number), [...(found.get(Number(number)) ?? []), half])
  }
  await journal.close()
  for (const halves of found.values()) expect(halves).toEqual(['left', 'right'])
  return [...found.keys()].sort((a, b) => a - b)
}

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'hermes-test-'))
  const folder = join(root, 'original')
  const limits = { journalSpareBytes: 1 }
  const first = createDiskJournal({ folder, limits })
  await first.open()
  for (let number = 0; number < 3; number++) await commit(first, number)
  await first.close()
  const second = createDiskJournal({ folder, limits })
  await second.open()
  for (let number = 3; number < 3 + COMMITS; number++) await commit(second, number)
  killed = join(root, 'killed')
  cpSync(folder, killed, { recursive: true })
  await second.close()
  closed = join(root, 'closed')
  cpSync(folder, closed, { recursive: true })
})
afterAll(() => rmSync(root, { recursive: true }))

const ALL = Array.from({ length: 3 + COMMITS }, (_, number) => number)

const fileLike = (folder: string, pattern: RegExp): string => {
  const found = readdirSync(folder).find((one) => pattern.test(one))
  if (found === undefined) throw new Error(`no ${pattern} among ${readdirSync(folder)}`)
  return join(folder, found)
}

let copies = 0
function copyOf(folder: string): string {
  const copy = join(root, `copy-${copies++}`)
  mkdirSync(copy, { mode: 0o700 })
  cpSync(folder, copy, { recursive: true })
  return copy
}

/** Each byte of the file in turn (or each `step`th) with one of its bits turned; tells the offsets at which the inspection found nothing. */
async function unnoticed(folder: string, pattern: RegExp, step = 1): Promise<number[]> {
  const copy = copyOf(folder)
  const path = fileLike(copy, pattern)
  const sound = readFileSync(path)
  const passed: number[] = []
  for (let at = 0; at < sound.length; at += step) {
    const changed = Buffer.from(sound)
    changed[at] = (changed[at] as number) ^ (1 << (at % 8))
    writeFileSync(path, changed)
    const fault = await folderFault(copy)
    if (fault === undefined) passed.push(at)
    else expect(fault).toMatch(/CURRENT|MANIFEST-\d+|\d+\.(log|ldb)/)
  }
  expect(sound.length).toBeGreaterThan(0)
  return passed
}

/** Bytes of a table's footer between its two handles and the sign at its end carry nothing. */
const footer = (length: number) => length - 48

describe.each(['killed', 'closed'] as const)('the inspection of a folder that was %s', (state) => {
  const folder = () => (state === 'killed' ? killed : closed)

  it('finds nothing where nothing is damaged, and all commits are there', async () => {
    expect(await folderFault(folder())).toBeUndefined()
    expect(await commitsIn(copyOf(folder()))).toEqual(ALL)
  })

  it('finds every bit that turns in a table', async () => {
    const { length } = readFileSync(fileLike(folder(), /\.ldb$/))
    for (const at of await unnoticed(folder(), /\.ldb$/, state === 'killed' ? 2 : 11)) {
      expect(at).toBeGreaterThan(footer(length))
      expect(at).toBeLessThan(length - 8)
    }
  })

  it('finds every bit that turns in CURRENT', async () => {
    expect(await unnoticed(folder(), /^CURRENT$/)).toEqual([])
  })

  it.each([/^CURRENT$/, /^MANIFEST/, /\.ldb$/, /\.log$/])('finds that %s is missing', async (pattern) => {
    const copy = copyOf(folder())
    rmSync(fileLike(copy, pattern))
    expect(await folderFault(copy)).toMatch(/is missing/)
  })

  it('finds that another log has taken the place of the newest', async () => {
    const copy = copyOf(folder())
    renameSync(fileLike(copy, /\.log$/), join(copy, '999999.log'))
    expect(await folderFault(copy)).toMatch(/\d+\.log is missing/)
  })
})

describe('turned bits in the log', () => {
  it('are all found after an orderly close', async () => {
    expect(await unnoticed(closed, /\.log$/, 5)).toEqual([])
  })

  it('are all found after a kill, but for those in the last write, which look like one that was cut short', async () => {
    const file = readFileSync(fileLike(killed, /\.log$/))
    const { records } = readLog(file)
    expect(records).toHaveLength(COMMITS)
    const last = records.at(-1)?.start as number
    const passed = await unnoticed(killed, /\.log$/)
    expect(passed.filter((at) => at < last)).toEqual([])
    // Its length is told apart: then its check still fits.
    expect(passed.filter((at) => at === last + 4 || at === last + 5)).toEqual([])
    const copy = copyOf(killed)
    const changed = Buffer.from(file)
    changed[file.length - 1] = (changed[file.length - 1] as number) ^ 1
    writeFileSync(fileLike(copy, /\.log$/), changed)
    expect(await commitsIn(copy)).toEqual(ALL.slice(0, -1))
  })
})

describe('turned bits in the manifest', () => {
  it('are all found after an orderly close', async () => {
    expect(await unnoticed(closed, /^MANIFEST/)).toEqual([])
  })

  it('are found after a kill, here or by LevelDB: nothing is left out in silence', async () => {
    for (const at of await unnoticed(killed, /^MANIFEST/)) {
      const copy = copyOf(killed)
      const path = fileLike(copy, /^MANIFEST/)
      const changed = readFileSync(path)
      changed[at] = (changed[at] as number) ^ (1 << (at % 8))
      writeFileSync(path, changed)
      await expect(commitsIn(copy)).rejects.toMatchObject({ code: 'JOURNAL_CORRUPT' })
    }
  })
})

describe('a log that is cut', () => {
  it('opens after a kill with the commits before the cut, none of them by halves', async () => {
    const { records } = readLog(readFileSync(fileLike(killed, /\.log$/)))
    const ends = records.map(({ start }) => start)
    for (const [index, start] of ends.entries()) {
      for (const size of [start, start + 3, start + 40]) {
        const copy = copyOf(killed)
        truncateSync(fileLike(copy, /\.log$/), size)
        expect(await folderFault(copy)).toBeUndefined()
        if (size !== start + 3) expect(await commitsIn(copy)).toEqual(ALL.slice(0, 3 + index))
      }
    }
  })

  it('may end in the middle of a write of many blocks', async () => {
    const folder = join(root, 'large')
    const journal = createDiskJournal({ folder, limits: { journalSpareBytes: 1 } })
    await journal.open()
    await commit(journal, 0)
    await journal.commit([{ table: 'updates', key: 'large', value: new Uint8Array(100_000) }])
    // Also right behind a block, where the fragments that are there are whole.
    const copies = [32_768, 40_000, 65_536, 70_000, 98_304, 100_000].map((size) => {
      const copy = copyOf(folder)
      truncateSync(fileLike(copy, /\.log$/), size)
      return copy
    })
    await journal.close()
    for (const copy of copies) expect(await commitsIn(copy)).toEqual([0])
  })

  it('is found after an orderly close, wherever it is cut', async () => {
    const { length } = readFileSync(fileLike(closed, /\.log$/))
    for (let size = 0; size < length; size += 7) {
      const copy = copyOf(closed)
      truncateSync(fileLike(copy, /\.log$/), size)
      expect(await folderFault(copy)).toMatch(/\.log has changed since it was closed/)
    }
  })

  it('may end in zeros after a power cut: they are passed over', async () => {
    const copy = copyOf(killed)
    const path = fileLike(copy, /\.log$/)
    writeFileSync(path, Buffer.concat([readFileSync(path), Buffer.alloc(5000)]))
    expect(await commitsIn(copy)).toEqual(ALL)
  })

  it('may not have zeros in the middle', async () => {
    const copy = copyOf(killed)
    const path = fileLike(copy, /\.log$/)
    const file = readFileSync(path)
    const { records } = readLog(file)
    file.fill(0, records[1]?.start, records[2]?.start)
    writeFileSync(path, file)
    expect(await folderFault(copy)).toMatch(/\.log is damaged at byte \d+, with stored commits behind it/)
  })

  it('cannot be made to look damaged by what a remote had stored in the write that was cut short', async () => {
    const file = readFileSync(fileLike(killed, /\.log$/))
    const { records } = readLog(file)
    const stolen = file.subarray(records[0]?.start, records[1]?.start)
    // Another life's groups have another name, so the bytes of one are no sign of a stored commit.
    const foreign = Buffer.from(stolen)
    const nonce = foreign.indexOf('!group') + '!group'.length + 1
    foreign.fill(0xaa, nonce, nonce + 8)
    const copy = copyOf(killed)
    const path = fileLike(copy, /\.log$/)
    writeFileSync(path, Buffer.concat([file, Buffer.from('half a header'), foreign]))
    expect(await commitsIn(copy)).toEqual(ALL)
  })
})

describe('a folder that was never finished', () => {
  it('is begun anew: a kill before CURRENT was there', async () => {
    const copy = copyOf(killed)
    for (const one of readdirSync(copy)) if (!/^MANIFEST|^LO/.test(one)) rmSync(join(copy, one))
    expect(await commitsIn(copy)).toEqual([])
  })
})
