import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const ROLES = ['pm', 'tester', 'coder', 'reviewer'] as const
export type Role = (typeof ROLES)[number]

/** How the agents are run. */
export interface Programs {
  /** Options of node that they need. */
  readonly execArgv: readonly string[]
  path(role: Role): string
}

/** The little that is used of esbuild, which comes with tsx. */
interface Bundler {
  build(options: Readonly<Record<string, unknown>>): Promise<unknown>
}

/**
 * The programs of the agents: beside this program where it has been put together with them, else put together here, once,
 * below `folder`. Six processes that each load the same thousand modules through a loader of TypeScript need eight times the
 * processor time, which is most of what a run takes. Without a bundler the sources are run as they are.
 */
export async function preparePrograms(folder: string): Promise<Programs> {
  const beside = (role: Role): string => fileURLToPath(new URL(`./${role}.mjs`, import.meta.url))
  if (ROLES.every((role) => existsSync(beside(role)))) return { execArgv: [], path: beside }
  const source = (role: Role): string => fileURLToPath(new URL(`../agents/${role}.ts`, import.meta.url))
  try {
    await bundle(ROLES.map(source), folder)
    return { execArgv: [], path: (role) => join(folder, `${role}.mjs`) }
  } catch {
    return { execArgv: process.execArgv, path: source }
  }
}

/** Puts the whole demo together below `folder`; resolves with the path of its main program. */
export async function bundleDemo(folder: string): Promise<string> {
  const sources = ['../main.ts', ...ROLES.map((role) => `../agents/${role}.ts`)]
  await bundle(
    sources.map((source) => fileURLToPath(new URL(source, import.meta.url))),
    folder,
  )
  return join(folder, 'main.mjs')
}

/** One file for each program, all in `folder`, and those that they share. */
async function bundle(programs: readonly string[], folder: string): Promise<void> {
  await findBundler().build({
    entryPoints: programs.map((path) => ({ in: path, out: basename(path, '.ts') })),
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    // A tenth less to be parsed by each of the six; names stay, for stacks.
    minifySyntax: true,
    minifyWhitespace: true,
    conditions: ['@hermes-peer/source'],
    // Native, optional, and only a matter of speed.
    external: ['sodium-native'],
    plugins: [leaveInPlace('classic-level')],
    // Packages in the older module format ask for the modules of node in their own way.
    banner: {
      js: "import { createRequire as toRequire } from 'node:module'; const require = toRequire(import.meta.url);",
    },
    logLevel: 'silent',
  })
}

/** A package with a native part looks for it beside itself, so it is loaded from where it is installed. */
function leaveInPlace(name: string): object {
  return {
    name: `leave ${name} in place`,
    setup(build: { onResolve(options: { filter: RegExp }, resolve: (found: { importer: string }) => object): void }) {
      build.onResolve({ filter: new RegExp(`^${name}$`) }, ({ importer }) => ({
        path: pathToFileURL(createRequire(importer).resolve(name)).href,
        external: true,
      }))
    },
  }
}

function findBundler(): Bundler {
  const own = createRequire(import.meta.url)
  return createRequire(own.resolve('tsx'))('esbuild') as Bundler
}
