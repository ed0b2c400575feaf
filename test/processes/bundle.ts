import { createRequire } from 'node:module'
import { basename, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build, type Plugin } from 'esbuild'

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
 * Puts one program and all it imports into one file below `folder`, and returns its path: a process that loads a thousand
 * modules through a loader of TypeScript takes seconds of processor time to start.
 */
export async function bundle(program: string, folder: string): Promise<string> {
  const outfile = join(folder, basename(program).replace(/\.ts$/, '.mjs'))
  await build({
    entryPoints: [fileURLToPath(new URL(program, import.meta.url))],
    outfile,
    bundle: true,
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
  return outfile
}
