import { readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * Left by an orderly close: everything had been stored then, so a log that ends differently, or in the middle of a write, has been
 * damaged since. Without it (after a kill) such an end is the write that was cut short.
 */
export interface Seal {
  readonly manifest: string
  /** It may have grown after the seal, by tidying up. */
  readonly manifestBytes: number
  readonly log: string
  readonly logBytes: number
}

const NAME = 'closed'

/** Never fails: the seal is a help, and closing goes on without it. */
export async function writeSeal(folder: string, { manifest, log }: Pick<Seal, 'manifest' | 'log'>): Promise<void> {
  try {
    const [manifestBytes, logBytes] = await Promise.all(
      [manifest, log].map(async (name) => (await stat(join(folder, name))).size),
    )
    const seal = { manifest, manifestBytes, log, logBytes }
    await writeFile(join(folder, NAME), `${JSON.stringify(seal)}\n`, { mode: 0o600 })
  } catch {
    await removeSeal(folder)
  }
}

/** The seal, if there is a whole one. */
export async function readSeal(folder: string): Promise<Seal | undefined> {
  try {
    const seal = JSON.parse(await readFile(join(folder, NAME), 'utf8')) as Seal
    const sound =
      typeof seal.manifest === 'string' &&
      typeof seal.log === 'string' &&
      Number.isSafeInteger(seal.manifestBytes) &&
      Number.isSafeInteger(seal.logBytes)
    return sound ? seal : undefined
  } catch {
    return undefined
  }
}

/** Taken away before anything is changed. One that stays by misfortune names a manifest of the past and is passed over. */
export async function removeSeal(folder: string): Promise<void> {
  await rm(join(folder, NAME), { force: true }).catch(() => undefined)
}
