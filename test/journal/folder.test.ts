import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { ClassicLevel } from 'classic-level'
import { createDiskJournal, createPeer, type Journal } from 'hermes-peer'
import { describe, expect, it, onTestFinished } from 'vitest'
import { temporaryFolder } from '../calls/support/team.ts'
import { eventually } from '../processes/fleet.ts'
import { numberedCommit, numbersIn } from './support/numbered.ts'
import { launchJournal } from './support/process.ts'
import { mountTmpfs, tmpfsRefusal } from './support/tmpfs.ts'

function place(): string {
  const root = temporaryFolder()
  onTestFinished(() => rmSync(root, { recursive: true, force: true }))
  return join(root, 'journal')
}

const journalIn = (folder: string): Journal => createDiskJournal({ folder, limits: { journalSpareBytes: 1 } })

async function filled(folder: string, commits = 5): Promise<void> {
  const journal = journalIn(folder)
  await journal.open()
  for (let number = 0; number < commits; number++) await journal.commit(numberedCommit(number))
  await journal.close()
}

async function contentOf(folder: string): Promise<number[]> {
  const journal = journalIn(folder)
  await journal.open()
  try {
    return await numbersIn(journal)
  } finally {
    await journal.close()
  }
}

/** Name and bytes of each file that holds data. */
const snapshot = (folder: string): [string, string][] =>
  readdirSync(folder)
    .filter((name) => !/^LO/.test(name))
    .sort()
    .map((name) => [name, readFileSync(join(folder, name)).toString('hex')])

describe('two processes on one journal', () => {
  it('the second is refused with JOURNAL_LOCKED that names the folder, and gets it when the first has gone', async () => {
    const folder = place()
    const [first, second] = await Promise.all([0, 1].map(() => launchJournal({ folder })))
    if (!first || !second) throw new Error('unreachable')
    onTestFinished(async () => void (await Promise.all([first.kill(), second.kill()])))
    expect(await first.ask({ open: true })).toEqual({})
    expect(await first.ask({ commit: 0 })).toEqual({})
    const { error } = await second.ask({ open: true })
    expect(error).toMatchObject({ code: 'JOURNAL_LOCKED', hint: expect.stringContaining('Stop the other one') })
    expect(error?.message).toContain(`${folder} is open in another process`)
    await expect(journalIn(folder).open()).rejects.toMatchObject({ code: 'JOURNAL_LOCKED' })
    // The refused ones changed nothing for the first.
    expect(await first.ask({ commit: 1 })).toEqual({})
    await first.kill()
    expect(await second.ask({ open: true })).toEqual({})
    expect(await second.ask({ commit: 2 })).toEqual({})
    expect(await second.ask({ close: true })).toEqual({})
    expect(await contentOf(folder)).toEqual([0, 1, 2])
  })

  it('is told apart from damage, however busy the first one is', async () => {
    const folder = place()
    const busy = await launchJournal({ folder })
    onTestFinished(() => busy.kill())
    await busy.ask({ open: true })
    let acknowledged = 0
    busy.write(0, () => acknowledged++)
    await eventually(() => acknowledged > 0)
    const before = acknowledged
    for (let tries = 0; tries < 8; tries++) {
      await expect(journalIn(folder).open()).rejects.toMatchObject({ code: 'JOURNAL_LOCKED' })
    }
    await eventually(() => acknowledged > before)
  })

  it('stops a second peer of the same agent before it answers anything', async () => {
    const folder = temporaryFolder()
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const first = await createPeer({ agentId: 'twin', folder }).start()
    onTestFinished(() => first.stop())
    const second = createPeer({ agentId: 'twin', folder })
    await expect(second.start()).rejects.toMatchObject({
      code: 'JOURNAL_LOCKED',
      details: { folder: join(folder, 'keys', 'twin.pem.journal') },
    })
    expect(second.addresses).toEqual([])
    await first.stop()
    await (await createPeer({ agentId: 'twin', folder }).start()).stop()
  })
})

describe('a folder that cannot be written', () => {
  it('is refused below a file, and where others can look into it, with what to do', async () => {
    const file = join(place(), '..', 'file')
    writeFileSync(file, '')
    await expect(journalIn(join(file, 'below')).open()).rejects.toMatchObject({
      code: 'STORAGE_FAILED',
      message: expect.stringContaining(join(file, 'below')),
      hint: expect.stringContaining('option journal'),
    })
    const folder = place()
    mkdirSync(folder)
    chmodSync(folder, 0o755)
    await expect(journalIn(folder).open()).rejects.toMatchObject({
      code: 'STORAGE_FAILED',
      message: expect.stringContaining('mode 755'),
      hint: `Run chmod 700 ${folder}.`,
    })
    chmodSync(folder, 0o700)
    await filled(folder)
    expect(statSync(folder).mode & 0o777).toBe(0o700)
  })

  it('without permission: no acknowledgement, reading goes on, and commits succeed again with it', async () => {
    const folder = place()
    const scratch = place()
    mkdirSync(folder, { mode: 0o700 })
    const process_ = await launchJournal({ folder })
    onTestFinished(() => process_.kill())
    if (process.getuid?.() === 0) {
      // Root may write everywhere, so the process becomes nobody; the way to the folder is opened for it.
      chmodSync(join(folder, '..'), 0o755)
      chownSync(folder, NOBODY, NOBODY)
      expect(await process_.ask({ become: NOBODY, scratch })).not.toHaveProperty('error')
    }
    expect(await process_.ask({ open: true })).toEqual({})
    expect(await process_.ask({ commit: 0 })).toEqual({})
    chmodSync(folder, 0o500)
    for (const number of [1, 2]) {
      const { error } = await process_.ask({ commit: number })
      expect(error).toMatchObject({ code: 'STORAGE_FAILED', hint: expect.stringContaining('chown') })
      expect(error?.message).toBe(`journal: ${folder} cannot be written: this user may not write there`)
    }
    expect(await process_.ask({ get: 'n/00000000' })).toEqual({ value: 10 })
    chmodSync(folder, 0o700)
    expect(await process_.ask({ commit: 3 })).toEqual({})
    await process_.kill()
    expect(await contentOf(folder)).toEqual([0, 3])
  })

  const refusal = tmpfsRefusal()
  it.skipIf(refusal !== undefined)(
    `on a file system that is mounted read only${refusal ? `: skipped, no tmpfs can be mounted (${refusal})` : ''}`,
    async () => {
      const disk = mountTmpfs(8)
      onTestFinished(() => disk.dispose())
      const folder = join(disk.folder, 'journal')
      await filled(folder)
      disk.remount('ro')
      await expect(contentOf(folder)).rejects.toMatchObject({
        code: 'STORAGE_FAILED',
        message: `journal: ${folder} cannot be opened: its file system can only be read`,
        hint: expect.stringContaining('Mount it for writing'),
      })
      await expect(journalIn(join(disk.folder, 'other')).open()).rejects.toMatchObject({ code: 'STORAGE_FAILED' })
      disk.remount('rw')
      expect(await contentOf(folder)).toEqual([0, 1, 2, 3, 4])
    },
  )
})

const NOBODY = 65_534

describe('a journal of a newer version', () => {
  it('is refused with JOURNAL_NEWER, both versions and what to do; nothing of it is lost', async () => {
    const folder = place()
    await filled(folder)
    await setFormat(folder, '7')
    const refused = await contentOf(folder).catch((error: unknown) => error)
    expect(refused).toMatchObject({
      code: 'JOURNAL_NEWER',
      message: `journal: ${folder} has format 7, this version knows 1; it was left as it is`,
      hint: expect.stringMatching(/^Run the version that wrote it/),
      details: { folder, format: 7, known: 1 },
    })
    await setFormat(folder, '1')
    expect(await contentOf(folder)).toEqual([0, 1, 2, 3, 4])
  })

  it.each(['0', '', 'one', '1.5'])('with a version %j it is no journal', async (format) => {
    const folder = place()
    await filled(folder)
    await setFormat(folder, format)
    await expect(contentOf(folder)).rejects.toMatchObject({
      code: 'JOURNAL_CORRUPT',
      message: expect.stringContaining('format version'),
    })
  })

  it('is never taken from another program: a LevelDB without a version is refused', async () => {
    const folder = place()
    mkdirSync(folder, { mode: 0o700 })
    const level = new ClassicLevel(folder, { compression: false })
    await level.put('some', 'thing')
    await level.close()
    await expect(contentOf(folder)).rejects.toMatchObject({
      code: 'JOURNAL_CORRUPT',
      message: `journal: ${folder} is damaged: it has entries but no format version`,
    })
  })
})

async function setFormat(folder: string, format: string): Promise<void> {
  const level = new ClassicLevel(folder, { compression: false })
  await level.put('!format', format)
  await level.close()
}

describe('damaged files', () => {
  const damages: Record<string, { file: RegExp; harm: (path: string) => void }> = {
    'a turned bit in the log': { file: /\.log$/, harm: (path) => turn(path, 100) },
    'a cut log': { file: /\.log$/, harm: (path) => truncateSync(path, statSync(path).size - 5) },
    'an emptied log': { file: /\.log$/, harm: (path) => truncateSync(path, 0) },
    'a log that is gone': { file: /\.log$/, harm: (path) => rmSync(path) },
    'a turned bit in a table': { file: /\.ldb$/, harm: (path) => turn(path, statSync(path).size >> 1) },
    'a cut table': { file: /\.ldb$/, harm: (path) => truncateSync(path, statSync(path).size - 1) },
    'a table that is gone': { file: /\.ldb$/, harm: (path) => rmSync(path) },
    'a turned bit in the manifest': { file: /^MANIFEST/, harm: (path) => turn(path, 12) },
    'an emptied manifest': { file: /^MANIFEST/, harm: (path) => truncateSync(path, 0) },
    'a CURRENT that is gone': { file: /^CURRENT$/, harm: (path) => rmSync(path) },
    'a CURRENT that names nothing': { file: /^CURRENT$/, harm: (path) => writeFileSync(path, 'MANIFEST-999999\n') },
  }

  it.each(Object.entries(damages))(
    '%s is refused with JOURNAL_CORRUPT, and the files stay as they are',
    async (_, { file, harm }) => {
      const folder = place()
      await filled(folder, 3)
      const journal = journalIn(folder)
      await journal.open()
      for (const number of [3, 4, 5]) await journal.commit(numberedCommit(number))
      await journal.close()
      const backup = `${folder}.backup`
      cpSync(folder, backup, { recursive: true })
      const name = readdirSync(folder).find((one) => file.test(one)) as string
      harm(join(folder, name))
      const before = snapshot(folder)
      const refused = await contentOf(folder).catch((error: unknown) => error)
      expect(refused).toMatchObject({
        code: 'JOURNAL_CORRUPT',
        message: expect.stringContaining(`journal: ${folder} is damaged: `),
        hint: expect.stringMatching(/^Restore the folder from a backup, or move it aside/),
      })
      expect(snapshot(folder)).toEqual(before)
      // What the hint says works: the backup opens, and an empty folder begins anew.
      rmSync(folder, { recursive: true })
      cpSync(backup, folder, { recursive: true })
      chmodSync(folder, 0o700)
      expect(await contentOf(folder)).toEqual([0, 1, 2, 3, 4, 5])
      rmSync(folder, { recursive: true })
      expect(await contentOf(folder)).toEqual([])
    },
  )
})

function turn(path: string, at: number): void {
  const bytes = readFileSync(path)
  bytes[at] = (bytes[at] as number) ^ 1
  writeFileSync(path, bytes)
}
