// Does node_modules hold what package-lock.json asks for? Plain Node, because it runs before anything is installed.

/**
 * @param {{packages?: Record<string, any>}} wanted content of package-lock.json
 * @param {{packages?: Record<string, any>} | undefined} present content of node_modules/.package-lock.json, which npm
 *   writes when an installation is complete
 * @param {{os: string, cpu: string, libc: string}} platform
 * @returns {string | undefined} the first difference, or undefined when they agree
 */
export function firstDifference(wanted, present, platform) {
  if (present?.packages === undefined) return 'nothing is installed'
  const want = wanted.packages ?? {}
  for (const [path, entry] of Object.entries(want)) {
    if (path === '') continue
    const found = present.packages[path]
    if (found === undefined) {
      if (mayBeAbsent(entry, platform)) continue
      return `${path} is missing`
    }
    if (!samePackage(entry, found)) return `${path} is ${found.version}, not ${entry.version}`
  }
  const extra = Object.keys(present.packages).find((path) => want[path] === undefined)
  return extra === undefined ? undefined : `${extra} is left over`
}

/** npm leaves out optional packages of other platforms, and what only those need (marked optional, with no platform). */
function mayBeAbsent(entry, platform) {
  if (entry.optional !== true) return false
  if (entry.os === undefined && entry.cpu === undefined) return true
  return !(allows(entry.os, platform.os) && allows(entry.cpu, platform.cpu) && allows(entry.libc, platform.libc))
}

function allows(list, value) {
  if (list === undefined) return true
  if (list.includes(`!${value}`)) return false
  return list.some((item) => item.startsWith('!') || item === value)
}

function samePackage(wanted, found) {
  if (wanted.link === true || found.link === true)
    return wanted.link === found.link && wanted.resolved === found.resolved
  return (
    wanted.version === found.version &&
    (wanted.integrity === undefined || found.integrity === undefined || wanted.integrity === found.integrity)
  )
}

export function thisPlatform() {
  // Without this the report looks up the names of all peers of this process.
  if (process.report) process.report.excludeNetwork = true
  const glibc = process.platform === 'linux' && process.report?.getReport().header.glibcVersionRuntime
  return { os: process.platform, cpu: process.arch, libc: glibc ? 'glibc' : 'musl' }
}
