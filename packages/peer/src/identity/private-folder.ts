import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fingerprintOf, fromBase64url, HermesError, isAgentId, toBase64url } from '@hermes-peer/protocol'
import { writePrivateFile } from './private-file.ts'
import { ADMITTED, mismatch, notAllowed, type Trust } from './trust.ts'

/** What an agent writes of itself into the folder. */
interface Card {
  agent_id: string
  key: string
  network: string
  addresses: string[]
  pid: number
}

/**
 * The private folder of one user on one machine (mode 0700): keys, pins, and a card of each agent that runs. Whoever can write
 * there is this user, so its agents trust each other with no configuration, over loopback only.
 */
export interface PrivateFolder {
  readonly keyFile: string
  readonly pinFile: string
  readonly trust: Trust
  /** Addresses of the other agents of that network that have a card, newest first, at most 64. */
  neighbours(network: string): string[]
  /** Puts this agent's card there; returns the way to take it away. */
  announce(card: { key: Uint8Array; network: string; addresses: readonly string[] }): () => void
}

/** Opens the folder, making it when needed. Throws `STORAGE_FAILED` when it cannot be made or others can look into it. */
export function openPrivateFolder(path: string, agentId: string): PrivateFolder {
  const cards = join(path, 'agents')
  // One segment per agent id: `billing/ledger` must not become a path.
  const safe = encodeURIComponent(agentId)
  prepare(path)
  prepare(cards)
  const cardOf = (id: string): Card | undefined => readCard(join(cards, `${encodeURIComponent(id)}.json`), id)
  return {
    keyFile: join(path, 'keys', `${safe}.pem`),
    pinFile: join(path, 'pins', `${safe}.json`),
    trust: {
      judge({ agentId: other, fingerprint, met, address }) {
        const card = cardOf(other)
        const known = card && fingerprintOf(fromBase64url(card.key) as Uint8Array)
        if (!known) return notAllowed(`${other} is not an agent of this user on this machine`)
        if (known !== fingerprint) return mismatch(other, fingerprint, known)
        if (met !== 'gossip' && !isLoopback(address)) {
          return notAllowed(`${other} came from ${address}; agents of this folder are trusted over loopback only`)
        }
        return ADMITTED
      },
      known(other) {
        const card = cardOf(other)
        return card && fingerprintOf(fromBase64url(card.key) as Uint8Array)
      },
      describe: () => `admitted: agents of this user on this machine (${path}), over loopback`,
    },
    neighbours(network) {
      return readdirSync(cards)
        .filter((name) => name.endsWith('.json') && name !== `${safe}.json`)
        .map((name) => ({ name, at: statSync(join(cards, name), { throwIfNoEntry: false })?.mtimeMs ?? 0 }))
        .sort((a, b) => b.at - a.at)
        .slice(0, 64)
        .map(({ name }) => readCard(join(cards, name)))
        .filter((card): card is Card => card?.network === network && runs(card.pid))
        .flatMap((card) => card.addresses.slice(0, 1))
    },
    announce({ key, network, addresses }) {
      const file = join(cards, `${safe}.json`)
      const card: Card = {
        agent_id: agentId,
        key: toBase64url(key),
        network,
        addresses: [...addresses],
        pid: process.pid,
      }
      writePrivateFile(file, `${JSON.stringify(card)}\n`)
      return () => {
        // A later life may have written its own by now.
        if (readCard(file)?.pid === process.pid) rmSync(file, { force: true })
      }
    },
  }
}

/** Whether a multiaddr is of the loopback range. What comes through a relay there may have come from anywhere. */
export function isLoopback(address: string | undefined): boolean {
  return (
    address !== undefined &&
    !address.includes('/p2p-circuit') &&
    /^\/(ip4\/127\.|ip6\/::1\/|ip6zone\/[^/]+\/ip6\/::1\/|unix\/|dns[46]?\/localhost\/)/.test(address)
  )
}

function prepare(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 })
  } catch (cause) {
    throw new HermesError('STORAGE_FAILED', {
      message: `folder: cannot make ${path}`,
      details: { field: 'folder' },
      cause,
    })
  }
  const { mode } = statSync(path)
  if (process.platform !== 'win32' && (mode & 0o077) !== 0) {
    throw new HermesError('STORAGE_FAILED', {
      message: `folder: others can look into ${path} (mode ${(mode & 0o777).toString(8)})`,
      hint: `Run chmod 700 ${path}.`,
      details: { field: 'folder' },
    })
  }
}

function readCard(file: string, id?: string): Card | undefined {
  try {
    const card = JSON.parse(readFileSync(file, 'utf8')) as Card
    const sound =
      isAgentId(card.agent_id) &&
      (id === undefined || card.agent_id === id) &&
      fromBase64url(card.key)?.length === 32 &&
      Array.isArray(card.addresses) &&
      card.addresses.every((address) => typeof address === 'string')
    return sound ? card : undefined
  } catch {
    return undefined
  }
}

/** Cards of killed processes stay behind; they are passed over. */
function runs(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
