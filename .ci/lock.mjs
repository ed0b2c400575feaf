import {
  appendFileSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'

/** The holder touches its lock this often, ms. */
const BEAT_MS = 1_000
/**
 * A lock whose processes are alive but that was not touched for this long, ms, names process ids that belong to others by
 * now. Long enough for a child to end that outlives a killed holder.
 */
const STALE_MS = 120_000

/**
 * Takes a lock that other processes see as a file, waiting for whoever holds it.
 * @param {string} path
 * @param {{onWait?: () => void, waitMs?: number, staleMs?: number}} options
 * @returns {Promise<{alsoHeldBy(pid: number): void, release(): void}>} `alsoHeldBy` names a child without whose end the
 *   lock must not pass on, even if this process is killed; `release` is safe to call twice
 * @throws {Error} with code `LOCK_TIMEOUT` when the holder keeps it longer than `waitMs` (default 15 min)
 */
export async function takeLock(path, { onWait = () => {}, waitMs = 900_000, staleMs = STALE_MS } = {}) {
  mkdirSync(dirname(path), { recursive: true })
  const end = Date.now() + waitMs
  for (let waiting = false; !tryTake(path); await new Promise((resolve) => setTimeout(resolve, 200))) {
    if (dropStale(path, staleMs)) continue
    if (!waiting) onWait()
    waiting = true
    if (Date.now() > end) throw Object.assign(new Error(`${path} is still held`), { code: 'LOCK_TIMEOUT' })
  }
  const beat = setInterval(() => touch(path), BEAT_MS)
  beat.unref()
  let held = true
  return {
    alsoHeldBy: (pid) => appendFileSync(path, ` ${pid}`),
    release: () => {
      if (!held) return
      held = false
      clearInterval(beat)
      rmSync(path, { force: true })
    },
  }
}

/** A link either appears whole, with its content, or not at all. */
function tryTake(path) {
  const mine = `${path}.${process.pid}`
  writeFileSync(mine, String(process.pid))
  try {
    linkSync(mine, path)
    return true
  } catch (error) {
    if (error.code === 'EEXIST') return false
    throw error
  } finally {
    rmSync(mine, { force: true })
  }
}

/** Moves a stale lock away first, so that of two that saw it only one removes it. */
function dropStale(path, staleMs) {
  try {
    const before = statSync(path)
    const pids = readFileSync(path, 'utf8').split(' ')
    if (Date.now() - before.mtimeMs < staleMs && pids.some(isAlive)) return false
    const away = `${path}.stale.${process.pid}`
    renameSync(path, away)
    // Somebody was faster, and this is a new lock: put it back.
    if (statSync(away).ino !== before.ino) linkSync(away, path)
    rmSync(away, { force: true })
    return true
  } catch {
    return true // gone in between: try again
  }
}

function isAlive(pid) {
  try {
    process.kill(Number(pid), 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

function touch(path) {
  try {
    const now = new Date()
    utimesSync(path, now, now)
  } catch {
    // Taken away while this process was stopped: nothing to keep alive.
  }
}
