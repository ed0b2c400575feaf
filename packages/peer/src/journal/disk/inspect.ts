import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { levelFiles, logName } from './folder.ts'
import { BATCH_HEADER, signOf } from './group-marker.ts'
import { hasChangedLength, hasFragment, hasRecordWith, readLog } from './log-file.ts'
import { readManifest } from './manifest.ts'
import { readSeal } from './seal.ts'
import { tableFault } from './table-file.ts'

/** Thrown inside of this file only. */
class Fault extends Error {}

/**
 * What is damaged in a folder of LevelDB, in words that name the file; nothing where all is sound. Only reads.
 *
 * LevelDB itself passes over damage in its logs and does not compare its tables with their checks, so that stored entries
 * would be missing in silence. Here every record and block is checked. The one thing that cannot be told apart, after a kill,
 * is damage in the last write and a last write that was cut short; after an orderly close it can, by the seal.
 */
export async function folderFault(folder: string): Promise<string | undefined> {
  try {
    await inspect(folder)
    return undefined
  } catch (error) {
    if (error instanceof Fault) return error.message
    throw error
  }
}

async function inspect(folder: string): Promise<void> {
  const files = levelFiles(await readdir(folder))
  if (!files.names.has('CURRENT')) {
    // Before CURRENT is there for the first time there are neither logs nor tables.
    const orphan = [...files.logs.map(logName), ...files.tables.values()][0]
    if (orphan !== undefined) throw new Fault(`CURRENT is missing, but ${orphan} is there`)
    return
  }
  const current = await manifestName(folder)
  const manifestFile = await read(folder, current)
  const changes = readLog(manifestFile)
  const { broken: torn } = changes
  if (torn !== undefined && (hasChangedLength(manifestFile, torn) || hasFragment(manifestFile, torn + 1))) {
    throw new Fault(`${current} is damaged at byte ${torn}`)
  }
  const manifest = readManifest(changes.records.map(({ data }) => data))
  if (!manifest) throw new Fault(`${current} makes no sense`)
  const seal = await readSeal(folder)
  const sealed = seal?.manifest === current ? seal : undefined
  if (sealed && changes.end < sealed.manifestBytes) {
    throw new Fault(`${current} has lost its end: ${changes.end} of ${sealed.manifestBytes} bytes are sound`)
  }

  for (const number of manifest.tables) {
    const name = files.tables.get(number)
    if (name === undefined) throw new Fault(`table ${number} is missing`)
    const fault = tableFault(await read(folder, name))
    if (fault) throw new Fault(`${name} ${fault}`)
  }

  const logs = files.logs.filter((number) => number >= manifest.logNumber)
  if (manifest.logNumber > 0 && logs[0] !== manifest.logNumber) {
    throw new Fault(`${logName(manifest.logNumber)} is missing`)
  }
  const last = logs.at(-1)
  if (sealed && (last === undefined || logName(last) !== sealed.log)) throw new Fault(`${sealed.log} is missing`)
  for (const number of logs) {
    const name = logName(number)
    const file = await read(folder, name)
    const { records, end, broken } = readLog(file)
    if (sealed?.log === name && end !== sealed.logBytes) {
      throw new Fault(`${name} has changed since it was closed: ${end} of ${sealed.logBytes} bytes are sound`)
    }
    if (broken === undefined) continue
    // One write ends before the next begins: what has a write behind it had been stored.
    const behind = number !== last || hasRecordWith(file, broken + 1, BATCH_HEADER, signOf(records))
    if (behind || hasChangedLength(file, broken)) {
      throw new Fault(`${name} is damaged at byte ${broken}${behind ? ', with stored commits behind it' : ''}`)
    }
  }
}

/** The manifest that is in use. */
export async function manifestName(folder: string): Promise<string> {
  const text = (await read(folder, 'CURRENT')).toString('latin1')
  const name = /^(MANIFEST-\d+)\n$/.exec(text)?.[1]
  if (name === undefined) throw new Fault('CURRENT does not name a manifest')
  return name
}

async function read(folder: string, name: string): Promise<Buffer> {
  try {
    return await readFile(join(folder, name))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw new Fault(`${name} is missing`)
    throw error
  }
}
