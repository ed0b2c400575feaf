import { posix } from 'node:path'
import {
  BESIDE,
  CHANCE_IMPORTS,
  CLOCK_AND_CHANCE,
  CONTRACTS,
  DISK_BUILTINS,
  DISK_FILES,
  DISK_FOLDERS,
  ENCODINGS,
  EXAMPLE_ARROWS,
  HOME_BUILTIN,
  LEAVES,
  MACHINE,
  MAX_LINES,
  OUTSIDE,
  PACKAGE_ARROWS,
  PURE_BUILTINS,
  SOCKET_BUILTINS,
  STAGES,
  TEST_ONLY,
  TRANSPORT,
} from './layout.ts'
import type { ImportEdge, SourceFile } from './source.ts'

type Judge = (file: SourceFile) => readonly string[]

/** Everything that is against the rules, one sentence each: where, what, and why. */
export function violations(files: readonly SourceFile[]): string[] {
  return files.flatMap((file) => JUDGES.flatMap((judge) => judge(file)))
}

const perImport =
  (judge: (file: SourceFile, edge: ImportEdge) => string | undefined): Judge =>
  (file) =>
    file.imports.flatMap((edge) => {
      const why = judge(file, edge)
      return why === undefined ? [] : [`${file.path}:${edge.line} imports ${edge.specifier}: ${why}`]
    })

const JUDGES: readonly Judge[] = [
  perImport(packageArrow),
  perImport(ownFolder),
  perImport(transport),
  perImport(stageOrder),
  perImport(builtins),
  clockAndChance,
  size,
]

function packageOf(path: string): string | undefined {
  return /^(packages|examples)\/[^/]+/.exec(path)?.[0]
}

const isSource = (path: string) => /^(packages|examples)\/[^/]+\/src\//.test(path)

function packageArrow(file: SourceFile, edge: ImportEdge): string | undefined {
  const ours = /^(hermes-peer|@hermes-peer\/[^/]+)(\/.*)?$/.exec(edge.specifier)
  if (ours === null) return undefined
  const [, name = '', deep] = ours
  if (deep !== undefined && !deep.startsWith('/vectors/')) return 'only the public entry of a package may be imported'
  const home = packageOf(file.path)
  if (home === undefined) return undefined
  const allowed = home.startsWith('examples/') ? EXAMPLE_ARROWS : PACKAGE_ARROWS[home]
  if (allowed === undefined) return `${home} has no arrows yet: add them to test/architecture/layout.ts`
  if (allowed.includes(name) || (!isSource(file.path) && TEST_ONLY.includes(name))) return undefined
  return `${home} may import ${allowed.join(', ') || 'no package of ours'}`
}

function ownFolder(file: SourceFile, edge: ImportEdge): string | undefined {
  const home = packageOf(file.path)
  if (!edge.specifier.startsWith('.') || home === undefined) return undefined
  return target(file, edge).startsWith(`${home}/`) ? undefined : 'a relative path must stay inside its package'
}

function transport(file: SourceFile, edge: ImportEdge): string | undefined {
  if (!isSource(file.path) || file.path.startsWith('packages/peer/src/network/')) return undefined
  if (TRANSPORT.test(edge.specifier)) return 'only packages/peer/src/network knows libp2p'
  if (!ENCODINGS.test(edge.specifier) || file.path.startsWith('packages/protocol/')) return undefined
  return 'encodings of libp2p belong to packages/protocol and packages/peer/src/network'
}

/** Where a relative import leads, from the root of the repository. */
function target(file: SourceFile, edge: ImportEdge): string {
  return posix.join(posix.dirname(file.path), edge.specifier)
}

const PEER = 'packages/peer/src/'
const folderOf = (inner: string) => (inner.includes('/') ? inner.slice(0, inner.indexOf('/')) : undefined)
const stageOf = (folder = '') => STAGES.indexOf(folder)

function stageOrder(file: SourceFile, edge: ImportEdge): string | undefined {
  if (!file.path.startsWith(PEER) || !edge.specifier.startsWith('.')) return undefined
  const from = file.path.slice(PEER.length)
  const to = target(file, edge).slice(PEER.length)
  if (edge.typeOnly && CONTRACTS.includes(to)) return undefined
  const [fromFolder, toFolder] = [folderOf(from), folderOf(to)]
  for (const folder of [fromFolder, toFolder]) {
    if (folder !== undefined && stageOf(folder) < 0 && BESIDE[folder] === undefined) {
      return `${folder}/ is no stage: add it to test/architecture/layout.ts`
    }
  }
  if (toFolder === undefined) return rootFile(from, fromFolder, to)
  if (fromFolder === undefined) return LEAVES.includes(from) ? 'this file must not know the stages' : undefined
  if (fromFolder === toFolder) return undefined
  if (BESIDE[toFolder]?.includes(fromFolder) === true)
    return `${toFolder}/ uses ${fromFolder}/, not the other way round`
  if (BESIDE[toFolder] !== undefined || BESIDE[fromFolder]?.includes(toFolder) === true) return undefined
  if (BESIDE[fromFolder] !== undefined) return `${fromFolder}/ stands beside the way and does not use ${toFolder}/`
  return stageOf(fromFolder) < stageOf(toFolder) ? undefined : `${toFolder}/ stands above ${fromFolder}/`
}

function rootFile(from: string, fromFolder: string | undefined, to: string): string | undefined {
  if (LEAVES.includes(to)) return undefined
  if (fromFolder === undefined && !LEAVES.includes(from)) return undefined
  return `only ${LEAVES.join(', ')} are for everyone (and types of ${CONTRACTS.join(', ')})`
}

function builtins(file: SourceFile, edge: ImportEdge): string | undefined {
  if (!edge.specifier.startsWith('node:')) return undefined
  if (file.path.startsWith('packages/protocol/src/')) {
    return PURE_BUILTINS.includes(edge.specifier) ? chance(edge) : 'protocol is pure: no sockets, no clock, no files'
  }
  if (!file.path.startsWith(PEER)) return undefined
  const inner = file.path.slice(PEER.length)
  const folder = folderOf(inner)
  if (MACHINE.includes(inner) || (inner === HOME_BUILTIN.file && edge.specifier === HOME_BUILTIN.builtin))
    return undefined
  if (SOCKET_BUILTINS.includes(edge.specifier) && folder !== 'network') return 'only network/ opens sockets'
  if (DISK_BUILTINS.includes(edge.specifier) && !DISK_FOLDERS.includes(folder ?? '') && !DISK_FILES.includes(inner)) {
    return `only ${DISK_FOLDERS.join('/, ')}/ touch the disk`
  }
  return mayReadTime(inner) ? undefined : chance(edge)
}

function chance(edge: ImportEdge): string | undefined {
  if (edge.specifier.startsWith('node:timers')) return 'timers come from Clock'
  if (edge.specifier === 'node:perf_hooks') return 'time comes from Clock'
  const name = edge.names.find((one) => edge.specifier === 'node:crypto' && CHANCE_IMPORTS.includes(one))
  return name === undefined ? undefined : `${name}: chance comes from Random`
}

/** The system's clock and random source, and what is below the seam. */
const mayReadTime = (inner: string) => MACHINE.includes(inner) || inner.startsWith('network/')

function clockAndChance(file: SourceFile): string[] {
  const pure = file.path.startsWith('packages/protocol/src/')
  const timeless = file.path.startsWith(PEER) && !mayReadTime(file.path.slice(PEER.length))
  if (!pure && !timeless) return []
  const banned = pure ? [...CLOCK_AND_CHANCE, ...OUTSIDE] : CLOCK_AND_CHANCE
  return file.globals
    .filter((use) => banned.includes(use.name))
    .map((use) => `${file.path}:${use.line} uses ${use.name}: time and chance come from Clock and Random`)
}

function size(file: SourceFile): string[] {
  return file.lines > MAX_LINES ? [`${file.path} has ${file.lines} lines: split it below ${MAX_LINES}`] : []
}
