import { readdir } from 'node:fs/promises'
import type { ClassicLevel } from 'classic-level'
import type { Random } from '../../random.ts'
import type { JournalChange, JournalTable } from '../journal.ts'
import type { JournalEntry, JournalPage, JournalStore } from '../store.ts'
import { cutGroup } from './cut-log.ts'
import { corrupt, failureOf, locked, newer, notLoaded } from './failures.ts'
import { levelFiles, logName, preparePrivate } from './folder.ts'
import { type GroupMarkers, groupMarkers, lifeOf, MARKER_KEY } from './group-marker.ts'
import { folderFault, manifestName } from './inspect.ts'
import { demandRoom } from './room.ts'
import { removeSeal, writeSeal } from './seal.ts'

export interface LevelStoreOptions {
  readonly folder: string
  readonly random: Random
  readonly spareBytes: number
}

type Level = ClassicLevel<string, Uint8Array>

/** An open LevelDB with what names the groups of this opening. */
interface Opened {
  readonly level: Level
  readonly markers: GroupMarkers
  /** Groups begun since it was opened. */
  groups: number
}

const FORMAT_KEY = '!format'
const FORMAT = 1

const LEVEL_OPTIONS = {
  keyEncoding: 'utf8',
  valueEncoding: 'view',
  // Every block can then be compared with its check before LevelDB is opened, without a decompressor.
  compression: false,
} as const

/** Entries of a page, and bytes after which it ends. */
const PAGE_ENTRIES = 256
const PAGE_BYTES = 1024 * 1024

/** How often a read is begun anew because LevelDB was closed under it. */
const MOST_READS = 3

export function createLevelStore(options: LevelStoreOptions): JournalStore {
  return new LevelStore(options)
}

class LevelStore implements JournalStore {
  readonly durable = true
  readonly #folder: string
  readonly #random: Random
  readonly #spareBytes: number
  /** Undefined before `open`, and from a failed write until it could be opened again. */
  #opened: Opened | undefined
  /** A group whose write failed and which may still be in the log. */
  #failed: { readonly markers: GroupMarkers; readonly group: number } | undefined
  #reopening: Promise<Opened> | undefined

  constructor({ folder, random, spareBytes }: LevelStoreOptions) {
    this.#folder = folder
    this.#random = random
    this.#spareBytes = spareBytes
  }

  async open(): Promise<void> {
    await preparePrivate(this.#folder)
    await this.#demandSound()
    await removeSeal(this.#folder)
    const opened = await this.#openLevel({})
    try {
      await this.#checkFormat(opened)
    } catch (error) {
      await opened.level.close()
      throw failureOf(this.#folder, error, 'cannot be opened')
    }
    this.#opened = opened
  }

  async write(changes: readonly JournalChange[]): Promise<void> {
    const opened = await this.#usable()
    if (changes.length === 0) return
    const bytes = changes.reduce((sum, { key, value }) => sum + key.length + (value?.length ?? 0), 0)
    await demandRoom(this.#folder, bytes, this.#spareBytes)
    try {
      await putGroup(opened, changes)
    } catch (cause) {
      const failure = failureOf(this.#folder, cause)
      this.#failed = { markers: opened.markers, group: opened.groups }
      await this.#reopen().catch(() => undefined)
      throw failure
    }
  }

  get(table: JournalTable, key: string): Promise<Uint8Array | undefined> {
    return this.#read((level) => level.get(`${table}/${key}`))
  }

  page({ table, prefix, after }: JournalPage): Promise<readonly JournalEntry[]> {
    const from = after === undefined ? { gte: `${table}/${prefix}` } : { gt: `${table}/${after}` }
    // Keys are printable, so DEL is behind all of them.
    const range = { ...from, lt: `${table}/${prefix}\x7f` }
    return this.#read(async (level) => {
      // A short-lived iterator per page: a slow reader holds no snapshot, and none is lost when LevelDB is opened again.
      const iterator = level.iterator({ ...range, highWaterMarkBytes: PAGE_BYTES })
      try {
        const entries = await iterator.nextv(PAGE_ENTRIES)
        return entries.map(([key, value]) => [key.slice(table.length + 1), value] as const)
      } finally {
        await iterator.close()
      }
    })
  }

  async close(): Promise<void> {
    await this.#reopening?.catch(() => undefined)
    if (this.#failed) await this.#reopen().catch(() => undefined)
    const opened = this.#opened
    this.#opened = undefined
    if (!opened) return
    const log = levelFiles(await readdir(this.#folder).catch(() => [])).logs.at(-1)
    const manifest = await manifestName(this.#folder).catch(() => undefined)
    if (log !== undefined && manifest !== undefined) {
      await writeSeal(this.#folder, { manifest, log: logName(log) })
    }
    await opened.level.close().catch((cause: unknown) => {
      throw failureOf(this.#folder, cause, 'cannot be closed')
    })
  }

  async #read<T>(read: (level: Level) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const opened = await this.#usable()
      try {
        return await read(opened.level)
      } catch (cause) {
        if (opened === this.#opened || attempt === MOST_READS) {
          throw failureOf(this.#folder, cause, 'cannot be read')
        }
      }
    }
  }

  /** LevelDB as it is open, or opened again where a write had failed. */
  async #usable(): Promise<Opened> {
    return this.#opened ?? (await this.#reopen())
  }

  #reopen(): Promise<Opened> {
    this.#reopening ??= this.#startAgain().finally(() => {
      this.#reopening = undefined
    })
    return this.#reopening
  }

  /**
   * After a failed write LevelDB is not to be trusted: it may hold the group in a buffer that it writes out when it is closed, it
   * goes on behind half a record so that later groups could not be recovered, or it refuses all writes. So it is closed, the
   * group is taken out of the log, and it is opened anew.
   */
  async #startAgain(): Promise<Opened> {
    const before = this.#opened
    this.#opened = undefined
    try {
      // At once too, for the case that the process ends before the next steps.
      if (before) {
        await this.#cutFailed().catch(() => undefined)
        await before.level.close()
      }
      await this.#cutFailed()
      this.#failed = undefined
      await this.#demandSound()
      this.#opened = await this.#openLevel({ createIfMissing: false })
      return this.#opened
    } catch (cause) {
      throw failureOf(this.#folder, cause, 'cannot be opened again')
    }
  }

  async #cutFailed(): Promise<void> {
    if (this.#failed) await cutGroup(this.#folder, this.#failed.markers, this.#failed.group)
  }

  async #openLevel(options: { createIfMissing?: boolean; errorIfExists?: boolean }): Promise<Opened> {
    // Loaded when a journal is opened: the native part is not needed by who only checks contracts.
    const { ClassicLevel } = await import('classic-level').catch((cause: unknown) => {
      throw notLoaded(this.#folder, cause)
    })
    const level = new ClassicLevel<string, Uint8Array>(this.#folder, { ...LEVEL_OPTIONS, ...options })
    try {
      await level.open()
    } catch (cause) {
      throw failureOf(this.#folder, cause, 'cannot be opened')
    }
    return { level, markers: groupMarkers(lifeOf((length) => this.#random.bytes(length))), groups: 0 }
  }

  /** Files that another process is writing look damaged, so that is asked first. */
  async #demandSound(): Promise<void> {
    if ((await this.#fault()) === undefined) return
    if (await this.#isLocked()) throw locked(this.#folder)
    const fault = await this.#fault()
    if (fault !== undefined) throw corrupt(this.#folder, fault)
  }

  async #fault(): Promise<string | undefined> {
    try {
      return await folderFault(this.#folder)
    } catch (cause) {
      throw failureOf(this.#folder, cause, 'cannot be read')
    }
  }

  /** Whether another one has it open. LevelDB takes its lock before it finds that there must be nothing, and reads no further. */
  async #isLocked(): Promise<boolean> {
    try {
      const { level } = await this.#openLevel({ errorIfExists: true, createIfMissing: false })
      await level.close()
      return false
    } catch (error) {
      return failureOf(this.#folder, error).code === 'JOURNAL_LOCKED'
    }
  }

  async #checkFormat(opened: Opened): Promise<void> {
    const stored = await opened.level.get(FORMAT_KEY)
    if (stored === undefined) {
      const [key] = await opened.level.keys({ limit: 1 }).all()
      if (key !== undefined) throw corrupt(this.#folder, 'it has entries but no format version')
      await demandRoom(this.#folder, 0, this.#spareBytes)
      await opened.level.put(FORMAT_KEY, new TextEncoder().encode(String(FORMAT)), { sync: true })
      return
    }
    const text = new TextDecoder('latin1').decode(stored)
    const format = Number(text)
    if (!/^[1-9]\d{0,8}$/.test(text))
      throw corrupt(this.#folder, `its format version is ${JSON.stringify(text.slice(0, 20))}`)
    if (format > FORMAT) throw newer(this.#folder, format, FORMAT)
  }
}

async function putGroup(opened: Opened, changes: readonly JournalChange[]): Promise<void> {
  opened.groups++
  await opened.level.batch(
    [
      { type: 'put', key: MARKER_KEY, value: opened.markers.value(opened.groups) },
      ...changes.map(({ table, key, value }) => {
        const name = `${table}/${key}`
        return value === undefined ? { type: 'del' as const, key: name } : { type: 'put' as const, key: name, value }
      }),
    ],
    { sync: true },
  )
}
