import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type ExportedName, readSource, type SourceFile } from './source.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const SKIPPED = new Set(['node_modules', 'dist', 'out', 'floor', 'vectors'])

export function readJson(path: string): unknown {
  return JSON.parse(readFileSync(join(ROOT, path), 'utf8'))
}

/** Folders below `packages/` and `examples/`, such as `packages/peer`. */
export function packageFolders(): string[] {
  return ['packages', 'examples'].flatMap((group) =>
    readdirSync(join(ROOT, group), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => `${group}/${entry.name}`),
  )
}

/** Every TypeScript file of the repository, parsed. */
export function readRepository(): SourceFile[] {
  const paths = [...packageFolders(), 'test'].flatMap((folder) => [...typeScriptBelow(join(ROOT, folder))])
  return paths.map((path) => readSource(relative(ROOT, path).split(sep).join('/'), readFileSync(path, 'utf8')))
}

function* typeScriptBelow(folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory() && !SKIPPED.has(entry.name)) yield* typeScriptBelow(join(folder, entry.name))
    if (entry.isFile() && /\.[mc]?ts$/.test(entry.name)) yield join(folder, entry.name)
  }
}

/** What a module exports, with `export *` followed. */
export function publicNames(entry: string, files: ReadonlyMap<string, SourceFile>): ExportedName[] {
  const file = files.get(entry)
  if (file === undefined) throw new Error(`${entry} does not exist`)
  return file.exports.flatMap((one) => (one.from === undefined ? [one] : publicNames(follow(entry, one.from), files)))
}

/** Modules in the order in which they run when `entry` is imported: paths of ours, and names of packages. */
export function executionOrder(entry: string, files: ReadonlyMap<string, SourceFile>): string[] {
  const order: string[] = []
  const seen = new Set<string>()
  const run = (path: string): void => {
    if (seen.has(path)) return
    seen.add(path)
    for (const edge of files.get(path)?.imports ?? []) {
      if (!edge.typeOnly) run(edge.specifier.startsWith('.') ? follow(path, edge.specifier) : edge.specifier)
    }
    order.push(path)
  }
  run(entry)
  return order
}

function follow(from: string, specifier: string): string {
  return join(from, '..', specifier).split(sep).join('/')
}
