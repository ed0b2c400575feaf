import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build, type Plugin } from 'esbuild'

/** What tests run in processes of their own, below the root of the repository and without `.ts`. */
export const PROGRAMS = [
  'examples/two-agents/src/pm',
  'examples/two-agents/src/reviewer',
  'test/calls/support/child',
  'test/chaos/agent',
  'test/hostile/leaks-child',
  'test/journal/support/child',
  'test/processes/agent',
  'test/processes/cycles',
  'test/processes/many',
  'test/streams/support/writer',
] as const
export type Program = (typeof PROGRAMS)[number]

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** It looks for its native part beside itself, so it is loaded from where it is installed. */
const storage: Plugin = {
  name: 'leave classic-level in place',
  setup(build) {
    build.onResolve({ filter: /^classic-level$/ }, ({ importer }) => ({
      path: pathToFileURL(createRequire(importer).resolve('classic-level')).href,
      external: true,
    }))
  },
}

/**
 * Puts programs and all that they import into few files below `folder`: a process that loads a thousand modules through a
 * loader of TypeScript takes seconds of processor time to start. All at once costs as much as one, as they share their parts.
 */
export async function bundle(folder: string, programs: readonly Program[] = PROGRAMS): Promise<void> {
  await build({
    entryPoints: programs.map((program) => join(ROOT, `${program}.ts`)),
    outbase: ROOT,
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    conditions: ['@hermes-peer/source'],
    // Native, optional, and only a matter of speed.
    external: ['sodium-native'],
    plugins: [storage],
    banner: {
      js: "import { createRequire as toRequire } from 'node:module'; const require = toRequire(import.meta.url);",
    },
    logLevel: 'error',
  })
}

/** Where `bundle` has put a program. */
export const bundled = (folder: string, program: Program): string => join(folder, `${program}.mjs`)
