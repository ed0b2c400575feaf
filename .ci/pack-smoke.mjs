// What users install is not what tests run from: packs the published packages, installs them in an empty folder, and has
// two peers call each other there with plain Node (no TypeScript, no package conditions). Then compiles a user's file
// against the packed types.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..')
const PACKED = ['packages/protocol', 'packages/peer', 'packages/testkit']
const QUIET = ['--ignore-scripts', '--loglevel=error', '--no-audit', '--no-fund', '--no-progress']

const folder = mkdtempSync(join(tmpdir(), 'hermes-packed-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130))

const run = (command, args, cwd = folder) =>
  execFileSync(command, args, { cwd, stdio: ['ignore', 'pipe', 'inherit'], encoding: 'utf8', timeout: 300_000 })

try {
  run('npx', ['tsc', '-b'], ROOT)
  const packed = run(
    'npm',
    ['pack', '--json', ...QUIET, '--pack-destination', folder, ...PACKED.map((path) => `./${path}`)],
    ROOT,
  )
  const tarballs = Object.values(JSON.parse(packed))
  for (const { name, files } of tarballs) {
    const stray = files
      .map((file) => file.path)
      .filter((path) => /(^|\/)(test|node_modules)\/|\.tsbuildinfo$/.test(path))
    if (stray.length > 0) throw new Error(`${name} packs what users do not need: ${stray.join(', ')}`)
  }
  writeFileSync(join(folder, 'package.json'), '{ "name": "user", "private": true, "type": "module" }\n')
  const { devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const users = [...tarballs.map(({ filename }) => `./${filename}`), `zod@${devDependencies.zod}`]
  run('npm', ['install', '--prefer-offline', ...QUIET, ...users])

  cpSync(join(ROOT, '.ci', 'packed'), folder, { recursive: true })
  console.log(run(process.execPath, ['call.mjs']).trim())
  run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', folder])
  console.log('the packed types compile, and are not `any`')
} catch (error) {
  console.error(error.stdout ? `${error.message}\n${error.stdout}` : error.message)
  process.exitCode = 1
}
