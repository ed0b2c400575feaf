import { readFileSync, statSync } from 'node:fs'
import { HermesError } from '@hermes-peer/protocol'
import type { FoundPeer } from '../../network/network.ts'
import { type ListedAgent, type ParseYaml, parseAgents } from './agents-file.ts'
import type { DirectoryContext, DirectoryFactory, DirectorySource } from './source.ts'
import { closed, reasonOf } from './unreachable.ts'

/** Largest file, bytes. */
const MOST_BYTES = 4 * 1024 * 1024
/** How often it is looked at whether the file has changed, ms. */
const LOOK_MS = 1000

/**
 * A file that lists agents, YAML or JSON: `agents: [{ agent_id, peer_id or key, addresses, capabilities }]`. Whoever maintains it
 * registers agents; peers only read it. Read again when it has changed, at most once a second; a broken file keeps the old content
 * and says so. The first reading must succeed: else the peer does not start, with `INVALID_OPTION` that names the entry.
 */
export function staticDirectory(path: string): DirectoryFactory {
  if (typeof path !== 'string' || path === '') {
    throw new HermesError('INVALID_OPTION', {
      message: 'staticDirectory: path must be the path of a file',
      details: { field: 'directories' },
    })
  }
  return (context) => createStaticSource(path, context)
}

function createStaticSource(path: string, { clock, peerId: own, report }: DirectoryContext): DirectorySource {
  const name = `file ${path}`
  let stamp: string | undefined
  let looked = Number.NEGATIVE_INFINITY
  /** By capability; bounded by the file. */
  let listed: ReadonlyMap<string, readonly FoundPeer[]> = new Map()
  /** Loaded when it is needed, as most peers read no such file. */
  let parse: ParseYaml | undefined
  let over = false
  const check = (): void => {
    if (over) throw closed(name)
  }
  const look = async (): Promise<void> => {
    parse ??= (await import('yaml')).parse
    const now = clock.monotonic()
    if (now - looked < LOOK_MS) return
    looked = now
    // Before it is read: what changes meanwhile is noticed the next time.
    const seen = stampOf(path)
    if (seen === stamp) return
    const first = stamp === undefined
    try {
      listed = byCapability(parseAgents(read(path, name), name, parse))
    } catch (error) {
      if (first) throw error
      report(`directories: the changed file is not used: ${reasonOf(error)}`)
    }
    stamp = seen
  }

  return {
    name,
    leased: false,
    async open() {
      check()
      await look()
    },
    async register() {
      check()
    },
    async renew() {
      check()
    },
    async unregister() {
      check()
    },
    async *find(capability) {
      check()
      await look()
      for (const { peerId, addresses } of listed.get(capability) ?? []) {
        if (peerId !== own) yield { peerId, addresses: [...addresses] }
      }
    },
    async close() {
      over = true
    },
  }
}

function byCapability(agents: readonly ListedAgent[]): Map<string, FoundPeer[]> {
  const map = new Map<string, FoundPeer[]>()
  for (const { peerId, addresses, capabilities } of agents) {
    for (const capability of new Set(capabilities)) {
      const peers = map.get(capability) ?? []
      peers.push({ peerId, addresses })
      map.set(capability, peers)
    }
  }
  return map
}

function read(path: string, name: string): string {
  const refuse = (why: string, cause?: unknown): never => {
    throw new HermesError('INVALID_OPTION', {
      message: `${name}: ${why}`,
      hint: 'Give the path of a file that lists agents.',
      details: { field: 'directories' },
      ...(cause === undefined ? {} : { cause }),
    })
  }
  try {
    const { size } = statSync(path)
    if (size > MOST_BYTES) return refuse(`has ${size} bytes, ${MOST_BYTES} at most`)
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof HermesError) throw error
    return refuse(`cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'unknown'}`, error)
  }
}

/** Another text whenever the file may have changed, or can no longer be looked at. */
function stampOf(path: string): string {
  try {
    const { mtimeMs, size, ino } = statSync(path)
    return `${mtimeMs} ${size} ${ino}`
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'gone'
  }
}
