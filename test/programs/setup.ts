import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  export interface ProvidedContext {
    /** A folder of one run of the tests, which is gone after it. */
    programs: string
  }
}

/** Gives the programs of a run their place; they are made when the first test asks for one. */
export default function setup(project: TestProject): () => void {
  const folders: string[] = []
  const provide = () => {
    const folder = mkdtempSync(join(tmpdir(), 'hermes-programs-'))
    folders.push(folder)
    project.provide('programs', folder)
  }
  provide()
  // What was changed meanwhile is in none of those that were made before.
  project.onTestsRerun(provide)
  return () => {
    for (const folder of folders) rmSync(folder, { recursive: true, force: true })
  }
}
