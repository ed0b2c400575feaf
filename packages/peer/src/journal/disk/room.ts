import { access, constants, statfs } from 'node:fs/promises'
import { HermesError } from '@hermes-peer/protocol'
import { failureOf } from './failures.ts'

/**
 * Refuses a write that the disk could not take, before LevelDB tries it and has to be closed: so reading goes on while a disk
 * is full or read only, and room stays for opening again. Throws `STORAGE_FAILED`.
 */
export async function demandRoom(folder: string, bytes: number, spareBytes: number): Promise<void> {
  const [, disk] = await Promise.all([
    access(folder, constants.W_OK).catch((cause: unknown) => {
      throw failureOf(folder, cause)
    }),
    // Where the system cannot tell, the write itself will.
    statfs(folder).catch(() => undefined),
  ])
  if (!disk) return
  const free = disk.bavail * disk.bsize
  // Once in the log, once in a table.
  const needed = 2 * bytes + spareBytes
  if (free >= needed) return
  throw new HermesError('STORAGE_FAILED', {
    message: `journal: ${folder} cannot be written: ${mib(free)} MiB are free on its disk, ${mib(needed)} MiB are needed`,
    hint: 'Free some space there; commits succeed again by themselves once there is room.',
    details: { folder, free, needed },
  })
}

const mib = (bytes: number): string => (bytes / 2 ** 20).toFixed(1)
