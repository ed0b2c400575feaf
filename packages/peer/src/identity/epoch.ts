import { existsSync, readFileSync } from 'node:fs'
import { HermesError } from '@hermes-peer/protocol'
import { writePrivateFile } from './private-file.ts'

/** Gives each life of an agent its number. */
export interface EpochStore {
  /** max(wall clock, stored + 1), stored before it is returned: no two lives share one, whatever the clock does. */
  next(now: number): number
}

/** Keeps the epoch in a file beside the key. Throws `STORAGE_FAILED` for a file that cannot be read, written or understood. */
export function fileEpochStore(path: string): EpochStore {
  return {
    next(now) {
      const epoch = Math.max(now, read(path) + 1)
      writePrivateFile(path, `${epoch}\n`)
      return epoch
    },
  }
}

/** For peers without a disk: a life is told from the next by the wall clock only. */
export function memoryEpochStore(last = 0): EpochStore {
  let stored = last
  return {
    next(now) {
      stored = Math.max(now, stored + 1)
      return stored
    },
  }
}

function read(path: string): number {
  if (!existsSync(path)) return 0
  let text: string
  try {
    text = readFileSync(path, 'utf8').trim()
  } catch (cause) {
    throw new HermesError('STORAGE_FAILED', { message: `cannot read ${path}`, details: { path }, cause })
  }
  const epoch = Number(text)
  if (!/^\d{1,16}$/.test(text) || !Number.isSafeInteger(epoch + 1)) {
    throw new HermesError('STORAGE_FAILED', {
      message: `${path} does not hold an epoch`,
      hint: 'Write into it a number higher than any this agent has used (the current time in ms will do).',
      details: { path },
    })
  }
  return epoch
}
