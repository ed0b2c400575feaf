// Makes the checkout ready to run: checks Node and installs what package-lock.json asks for, if it is not there yet.
// Plain Node without dependencies, in syntax that old versions parse, so that they can be told what is missing.
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { firstDifference, thisPlatform } from './installed.mjs'
import { takeLock } from './lock.mjs'

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..')
const MIN_NODE = [20, 20]

/** Progress goes to stderr: stdout belongs to the command that comes next. */
const say = (line) => process.stderr.write(`${line}\n`)

function fail(line) {
  say(line)
  process.exit(1)
}

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number)
  if (major > MIN_NODE[0] || (major === MIN_NODE[0] && minor >= MIN_NODE[1])) return
  fail(
    `Hermes Peer needs Node ${MIN_NODE.join('.')} or newer; this is ${process.versions.node} (${process.execPath}). ` +
      'Install a newer one and run the command again.',
  )
}

function readJson(path) {
  try {
    return JSON.parse(readFileSync(join(ROOT, path), 'utf8'))
  } catch {
    return undefined
  }
}

function isInstalled() {
  const wanted = readJson('package-lock.json')
  if (wanted === undefined)
    fail('package-lock.json is missing or broken: restore it with `git checkout package-lock.json`.')
  return firstDifference(wanted, readJson('node_modules/.package-lock.json'), thisPlatform()) === undefined
}

/** Resolves with npm's exit code and what it said, or undefined when the user stopped it. */
function npmCi(onStart) {
  const flags = [
    'ci',
    '--include=dev',
    '--include=optional',
    // No package here needs its install script: native parts come prebuilt.
    '--ignore-scripts',
    '--loglevel=error',
    '--no-progress',
    // npm would try for over a minute before it says that there is no network.
    '--fetch-retry-mintimeout=1000',
    '--fetch-retry-maxtimeout=5000',
  ]
  // The npm that runs us, where there is one: another may come first on the path.
  const npm = process.env.npm_execpath
  const own = npm !== undefined && /npm-cli\.c?js$/.test(npm)
  const child = own
    ? spawn(process.execPath, [npm, ...flags], { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] })
    : spawn('npm', flags, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'], shell: process.platform === 'win32' })
  let said = ''
  const keep = (chunk) => {
    said = (said + chunk).slice(-20_000)
  }
  child.stdout.on('data', keep)
  child.stderr.on('data', keep)
  if (child.pid !== undefined) onStart(child.pid)
  let stopped = false
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      stopped = true
      child.kill(signal)
    })
  }
  return new Promise((resolve) => {
    child.on('error', (error) => resolve({ code: 1, said: error.message }))
    child.on('close', (code) => resolve(stopped ? undefined : { code, said }))
  })
}

function explain(said) {
  const unreachable =
    /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT)\b/
  const why = unreachable.exec(said)
  if (why !== null) {
    return `Installing failed: npm cannot reach its registry (${why[1]}). Check the network connection or the proxy settings of npm, and run the command again.`
  }
  if (/\bENOSPC\b/.test(said))
    return 'Installing failed: the disk is full. Free about 300 MB and run the command again.'
  if (/\b(EACCES|EPERM|EROFS)\b/.test(said)) {
    return `Installing failed: this user may not write to ${join(ROOT, 'node_modules')}. Change its owner and run the command again.`
  }
  const lines = said.split('\n').filter((line) => line.trim() !== '' && !/A complete log of this run/.test(line))
  return `Installing failed; npm says:\n${lines.slice(-12).join('\n')}\nTry \`npm ci\` by hand to see more.`
}

async function install() {
  const lock = await takeLock(join(ROOT, '.ci', 'out', 'install.lock'), {
    onWait: () => say('Another run is installing dependencies: waiting for it…'),
  }).catch((error) =>
    fail(`Another run has been installing for too long (${error.message}). If there is none, delete that file.`),
  )
  process.on('exit', lock.release)
  // Whoever held the lock may have done it meanwhile.
  if (isInstalled()) return lock.release()
  say('Installing dependencies (first run or new versions, about 30 s)…')
  const end = await npmCi(lock.alsoHeldBy)
  lock.release()
  if (end === undefined) process.exit(130)
  if (end.code !== 0) fail(explain(end.said))
}

checkNode()
if (!isInstalled()) await install()
