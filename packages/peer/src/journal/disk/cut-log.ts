import { open, readdir, readFile } from 'node:fs/promises'
import { corrupt } from './failures.ts'
import { levelFiles, logName, logPath } from './folder.ts'
import { BATCH_HEADER, type GroupMarkers, signOf } from './group-marker.ts'
import { hasRecordWith, readLog } from './log-file.ts'

/**
 * Takes a group whose write failed out of LevelDB's newest log, whole or half there, so that no later opening finds it. Writes
 * go one by one, so it is the last thing in there.
 */
export async function cutGroup(folder: string, markers: GroupMarkers, number: number): Promise<void> {
  const newest = levelFiles(await readdir(folder)).logs.at(-1)
  if (newest === undefined) return
  const path = logPath(folder, newest)
  const file = await readFile(path)
  const { records, end, broken } = readLog(file)
  const start = records.find((record) => markers.isGroup(record, number))?.start ?? end
  if (start >= file.length) return
  if (broken !== undefined && start === end && hasRecordWith(file, broken + 1, BATCH_HEADER, signOf(records))) {
    // Not left by this write: cutting here would take away what had been stored.
    throw corrupt(folder, `${logName(newest)} is damaged at byte ${broken}, with stored commits behind it`)
  }
  const handle = await open(path, 'r+')
  try {
    await handle.truncate(start)
    await handle.datasync()
  } finally {
    await handle.close()
  }
}
