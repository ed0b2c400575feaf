import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inject } from 'vitest'
import { bundle, bundled, type Program } from './bundle.ts'

/** A build takes a second or two; on a busy machine a multiple of that. */
const PATIENCE_MS = 60_000

/** The path of a program that a test can run by plain Node. The first who asks in a run makes all of them; others wait. */
export async function program(name: Program): Promise<string> {
  const folder = inject('programs')
  const made = join(folder, 'made')
  if (first(folder)) {
    await bundle(folder)
    writeFileSync(made, '')
  }
  const end = performance.now() + PATIENCE_MS
  while (!existsSync(made)) {
    if (performance.now() > end) throw new Error(`the programs of the tests were not made within ${PATIENCE_MS} ms`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return bundled(folder, name)
}

/** Of all processes that run tests, one makes this folder. */
function first(folder: string): boolean {
  try {
    mkdirSync(join(folder, 'begun'))
    return true
  } catch {
    return false
  }
}
