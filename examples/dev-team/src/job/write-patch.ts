import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { failure } from '../failures.ts'

/** Writes a file so that it is there as a whole or not at all. Fails with `OTHER`. */
export async function writePatch(folder: string, name: string, patch: Uint8Array): Promise<string> {
  const file = join(folder, name)
  try {
    await mkdir(folder, { recursive: true })
    const temporary = join(folder, `.${name}.${process.pid}.tmp`)
    await writeFile(temporary, patch)
    await rename(temporary, file)
    return file
  } catch (error) {
    throw failure(
      'OTHER',
      `${file} cannot be written: ${(error as Error).message}`,
      'Give another folder with --out.',
      error,
    )
  }
}
