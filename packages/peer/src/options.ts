import { homedir } from 'node:os'
import { join } from 'node:path'
import { checkName, HermesError } from '@hermes-peer/protocol'
import { DEFAULTS, STREAM_WINDOW_BYTES, type Tunables } from './defaults.ts'
import { dhtDirectory } from './directory/sources/dht.ts'
import type { DirectoryFactory } from './directory/sources/source.ts'
import type { AllowedAgent } from './identity/allow-list.ts'
import type { PolicyDocument } from './policy/document.ts'
import { type Policy, policyOfObject } from './policy/read.ts'
import { type RelayOptions, type RelaySettings, relayOf } from './relay-options.ts'
import type { EmbedFunction } from './routing/intent/embedder.ts'
import type { MessageLogLine } from './telemetry/message-log.ts'

/** Who is admitted, beyond what the preset says. */
export interface TrustOptions {
  /** A JSON file, or the list itself: `{"agents": [{"agent_id", "key" | "fingerprint"}]}`. */
  allow?: string | readonly AllowedAgent[]
  /** A file that keeps the keys of agents this peer first dialled itself at an address the user gave. */
  pins?: string
  /**
   * The public key of an organisation: agents that it has certified are admitted, in their team and roles. Raw in base64url, or the
   * path of a file that holds it in PEM, as `makeOrganisationKey` writes it.
   */
  org?: string
  /** Agents whose endorsements of others count when candidates are ranked. Default: nobody's. */
  endorsers?: readonly string[]
}

export interface PeerOptions {
  /** One to four segments joined by `/`, at most 128 characters. One agent id is one running process. */
  agentId: string
  /** Peers of different networks never meet. Default `default`. */
  network?: string
  /**
   * `local` (default): trusts the agents of this user on this machine through a private folder, listens on loopback only.
   * `server`: refuses to start without `trust` and `policy`. `none`: nothing is assumed; without `trust` nobody is admitted.
   */
  preset?: 'local' | 'server' | 'none'
  /** Path of the key file, made when it does not exist. Default: in the private folder, `<agentId>.pem`. */
  identity?: string
  /**
   * Path of the certificates of this agent, as `certifyAgent` or `certifyInstance` writes them; the key file must be the one they
   * are for. Then `identity` defaults to this path with `.pem` in the place of `.cert`.
   */
  certificate?: string
  trust?: TrustOptions
  /**
   * Who may use what here, and what this agent may use of whom: the path of a YAML or JSON file, which is followed as it changes, or
   * the rules themselves. Without it every admitted agent may use every capability; with it, what no rule allows is denied.
   */
  policy?: string | PolicyDocument
  /** Multiaddrs to listen on. Default `['/ip4/127.0.0.1/tcp/0']`: any free port. */
  listen?: readonly string[]
  /** Multiaddrs to tell others instead of those listened on. */
  announce?: readonly string[]
  /** Multiaddrs of peers to join the network through. */
  bootstrap?: readonly string[]
  /**
   * Where this peer writes down what it offers, and looks up who offers what: any of `dhtDirectory()`, `staticDirectory(path)`,
   * `redisDirectory(url)` and `memoryDirectory()`, asked at the same time. Default: the DHT alone; what is listed replaces it.
   */
  directories?: readonly DirectoryFactory[]
  /** Be called through relays, or be one. Default: neither; agents behind a relay can be called all the same. */
  relay?: RelayOptions
  /**
   * Keeps places for whom trust knows by its key, and gives others few and for a short time: where only a handshake can tell (pins,
   * certificates, the next key of an agent on a list) a connection has 10 s to come to one, unless it takes part in the DHT.
   * `'keys'`: such a peer is refused right after the encryption, before the DHT, gossip or any agent sees it, and is not dialled;
   * this also refuses agents whose key only a certificate ties to them, and pins no new ones.
   * Relays and peers to join through that are named with their peer id are let in. Default: true with `preset: 'server'`.
   */
  gate?: boolean | 'keys'
  /**
   * Path of the key that all peers of a private network share, of mode 0600; `generatePreSharedKey` makes one. Whoever does
   * not have it cannot begin a connection, and learns nothing from one. Default: none.
   */
  preSharedKey?: string
  /** Also find peers in the local network by mDNS. Default false. */
  mdns?: boolean
  /** The private folder. Default `~/.hermes-peer`. */
  folder?: string
  /**
   * The folder of the journal, which keeps what must survive a restart; made when it does not exist. Default: beside the key
   * file, `<key file>.journal`. `false`: in memory, so that tasks, results and drafts end with the process.
   */
  journal?: string | false
  /** One paragraph for the manifest. */
  description?: string
  /** What others have signed about this agent, as their `endorse` gave it; shown in the manifest, at most 16. */
  endorsements?: readonly string[]
  /** Tells what texts mean, for calls by `intent`; `openAiEmbeddings()` makes one. Default: their words are compared. */
  embed?: EmbedFunction
  /** Called with one line per envelope. */
  messageLog?: (line: MessageLogLine) => void
  /** Replaces single defaults; every value is a positive number. */
  tuning?: Partial<Tunables>
}

/** Options that have been checked, with the defaults filled in. */
export interface Settings {
  readonly agentId: string
  readonly network: string
  readonly preset: 'local' | 'server' | 'none'
  readonly identity: string | undefined
  readonly certificate: string | undefined
  readonly trust: TrustOptions | undefined
  readonly policy: string | Policy | undefined
  readonly listen: readonly string[]
  readonly announce: readonly string[] | undefined
  readonly bootstrap: readonly string[]
  readonly directories: readonly DirectoryFactory[]
  readonly relay: RelaySettings
  readonly gate: boolean | 'keys'
  readonly preSharedKey: string | undefined
  readonly mdns: boolean
  readonly folder: string
  readonly journal: string | false | undefined
  readonly description: string
  readonly endorsements: readonly string[]
  readonly embed: EmbedFunction | undefined
  readonly messageLog: ((line: MessageLogLine) => void) | undefined
  readonly tunables: Tunables
}

const KNOWN: ReadonlySet<string> = new Set<keyof PeerOptions>([
  'agentId',
  'network',
  'preset',
  'identity',
  'certificate',
  'trust',
  'policy',
  'listen',
  'announce',
  'bootstrap',
  'directories',
  'relay',
  'gate',
  'preSharedKey',
  'mdns',
  'folder',
  'journal',
  'description',
  'endorsements',
  'embed',
  'messageLog',
  'tuning',
])

/** Checks once, at the boundary. Throws `INVALID_NAME`, `INVALID_ADDRESS`, `INVALID_POLICY` or `INVALID_OPTION` that names the field. */
export function readOptions(options: PeerOptions): Settings {
  if (typeof options !== 'object' || options === null) refuse('options', 'must be an object with at least agentId')
  for (const key of Object.keys(options)) {
    if (!KNOWN.has(key)) refuse(key, `is not an option; known are ${[...KNOWN].join(', ')}`)
  }
  const preset = options.preset ?? 'local'
  if (!['local', 'server', 'none'].includes(preset)) refuse('preset', 'must be local, server or none')
  const settings: Settings = {
    agentId: checkName('agent_id', options.agentId, 'agentId'),
    network: options.network === undefined ? 'default' : checkName('network', options.network, 'network'),
    preset,
    identity: text(options, 'identity') ?? besideCertificate(text(options, 'certificate')),
    certificate: text(options, 'certificate'),
    trust: trustOf(options.trust),
    policy: policyOf(options.policy),
    listen: addresses(options, 'listen') ?? ['/ip4/127.0.0.1/tcp/0'],
    announce: addresses(options, 'announce'),
    bootstrap: addresses(options, 'bootstrap') ?? [],
    directories: directoriesOf(options.directories),
    relay: relayOf(options.relay),
    gate: gateOf(options.gate, preset),
    preSharedKey: text(options, 'preSharedKey', 'must be the path of a key file'),
    mdns: boolean(options.mdns, 'mdns'),
    folder: text(options, 'folder') ?? join(homedir(), '.hermes-peer'),
    journal: options.journal === false ? false : text(options, 'journal', 'must be the path of a folder, or false'),
    description: text(options, 'description') ?? '',
    endorsements: texts(options.endorsements, 'endorsements', 16),
    embed: callback<EmbedFunction>(options.embed, 'embed'),
    messageLog: callback<(line: MessageLogLine) => void>(options.messageLog, 'messageLog'),
    tunables: tunablesOf(options.tuning),
  }
  const { allow, org, pins } = settings.trust ?? {}
  if (preset === 'server' && !(allow ?? org ?? pins)) {
    refuse(
      'trust',
      'is missing: the server preset admits only whom you name',
      'Give trust: { allow: "./trust.json" }, or { org: "./acme.pub" }.',
    )
  }
  if (preset === 'server' && settings.policy === undefined) {
    refuse(
      'policy',
      'is missing: the server preset serves only what a rule allows',
      'Give policy: "./policy.yaml", or policy: { serve: [{ principal: "*", capability: "*" }] } to allow everything to all who are admitted.',
    )
  }
  if (settings.listen.length === 0 && settings.relay.via.length === 0) {
    refuse(
      'listen',
      'must name at least one address: without a relay nobody could call this peer',
      'Or give relay: { via: […] }.',
    )
  }
  if (preset === 'local') {
    if (settings.relay.via.length > 0 || settings.relay.server) {
      refuse(
        'relay',
        'reaches beyond this machine, and the local preset stays on it',
        'Use preset: "server" (with trust).',
      )
    }
    for (const address of settings.listen) {
      if (!/^\/(ip4\/127\.|ip6\/::1\/|memory\/)/.test(address)) {
        refuse(
          'listen',
          `${address} is not a loopback address, and the local preset listens on loopback only`,
          'Use preset: "server" (with trust and policy) to listen on a network.',
        )
      }
    }
  }
  if (settings.description.length > 2048) refuse('description', 'is longer than 2048 characters')
  return settings
}

function refuse(field: string, why: string, hint?: string): never {
  throw new HermesError('INVALID_OPTION', {
    message: `${field} ${why}`,
    details: { field },
    ...(hint ? { hint } : {}),
  })
}

function text(
  options: PeerOptions,
  field: 'identity' | 'certificate' | 'folder' | 'journal' | 'description' | 'preSharedKey',
  demand = 'must be a text that is not empty',
): string | undefined {
  const value: unknown = options[field]
  if (value === undefined) return undefined
  if (typeof value !== 'string' || (value === '' && field !== 'description')) refuse(field, demand)
  return value as string
}

function gateOf(value: unknown, preset: PeerOptions['preset']): boolean | 'keys' {
  if (value === undefined) return preset === 'server'
  if (value !== 'keys' && typeof value !== 'boolean') refuse('gate', 'must be true, false or "keys"')
  return value as boolean | 'keys'
}

function texts(value: unknown, field: string, most: number): readonly string[] {
  if (value === undefined) return []
  if (!Array.isArray(value) || value.length > most || !value.every((one) => typeof one === 'string')) {
    refuse(field, `must be a list of at most ${most} texts`)
  }
  return value as readonly string[]
}

function boolean(value: unknown, field: string): boolean {
  if (value !== undefined && typeof value !== 'boolean') refuse(field, 'must be true or false')
  return value === true
}

function callback<F>(value: unknown, field: string): F | undefined {
  if (value !== undefined && typeof value !== 'function') refuse(field, 'must be a function')
  return value as F | undefined
}

function directoriesOf(value: unknown): readonly DirectoryFactory[] {
  if (value === undefined) return [dhtDirectory()]
  if (!Array.isArray(value) || value.length > 16) refuse('directories', 'must be a list of at most 16 directories')
  for (const [index, one] of (value as unknown[]).entries()) {
    if (typeof one !== 'function')
      refuse(`directories[${index}]`, 'must be made by dhtDirectory(), staticDirectory(path), …')
  }
  return [...(value as DirectoryFactory[])]
}

const ADDRESS = /^\/(ip4|ip6|dns|dns4|dns6|memory)\/[^/\s]+(\/[^/\s]+)*$/

function addresses(options: PeerOptions, field: 'listen' | 'announce' | 'bootstrap'): readonly string[] | undefined {
  const value: unknown = options[field]
  if (value === undefined) return undefined
  if (!Array.isArray(value) || value.length > 64) refuse(field, 'must be a list of at most 64 multiaddrs')
  for (const address of value as unknown[]) {
    if (typeof address !== 'string' || !ADDRESS.test(address)) {
      throw new HermesError('INVALID_ADDRESS', {
        message: `${field}: ${JSON.stringify(address)?.slice(0, 120)} is not a multiaddr`,
        details: { field },
      })
    }
  }
  return value as string[]
}

function trustOf(value: unknown): TrustOptions | undefined {
  if (value === undefined) return undefined
  if (typeof value !== 'object' || value === null) refuse('trust', 'must be an object with allow, org or pins')
  const { allow, pins, org, endorsers, ...rest } = value as TrustOptions & Record<string, unknown>
  const other = Object.keys(rest)[0]
  if (other !== undefined) refuse(`trust.${other}`, 'is not an option; known are allow, org, pins and endorsers')
  if (allow === undefined && pins === undefined && org === undefined && endorsers === undefined) {
    refuse('trust', 'must name allow, org, pins or endorsers')
  }
  texts(endorsers, 'trust.endorsers', 64).forEach((one, index) => {
    checkName('agent_id', one, `trust.endorsers[${index}]`)
  })
  if (allow !== undefined && (typeof allow !== 'string' || allow === '') && !Array.isArray(allow)) {
    refuse('trust.allow', 'must be a path or a list')
  }
  if (pins !== undefined && (typeof pins !== 'string' || pins === '')) refuse('trust.pins', 'must be a path')
  if (org !== undefined && (typeof org !== 'string' || org === '')) refuse('trust.org', 'must be a path or a key')
  return value as TrustOptions
}

function policyOf(value: unknown): string | Policy | undefined {
  if (value === undefined) return undefined
  if (typeof value === 'string') return value === '' ? refuse('policy', 'must be a path or an object') : value
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return refuse('policy', 'must be the path of a file, or an object with serve and call')
  }
  return policyOfObject(value as PolicyDocument)
}

/** `ledger.cert` → `ledger.pem`. */
function besideCertificate(path: string | undefined): string | undefined {
  return path?.endsWith('.cert') ? `${path.slice(0, -'.cert'.length)}.pem` : undefined
}

function tunablesOf(value: unknown): Tunables {
  if (value === undefined) return DEFAULTS
  if (typeof value !== 'object' || value === null) refuse('tuning', 'must be an object')
  for (const [key, number] of Object.entries(value as object)) {
    if (!Object.hasOwn(DEFAULTS, key)) refuse(`tuning.${key}`, 'is not a default that can be set')
    if (typeof number !== 'number' || !Number.isFinite(number) || number <= 0)
      refuse(`tuning.${key}`, 'must be a positive number')
  }
  const tunables = { ...DEFAULTS, ...(value as Partial<Tunables>) }
  checkStreamMarks(tunables)
  return tunables
}

/** A writer that listens must never be given up for what was on its way when it was told to pause. */
function checkStreamMarks({
  streamBufferBytes,
  streamPauseAt,
  streamResumeAt,
  streamAbortAt,
  streamWriteBytes,
}: Tunables) {
  if (streamResumeAt >= streamPauseAt) refuse('tuning.streamResumeAt', `must be below streamPauseAt, ${streamPauseAt}`)
  if (streamAbortAt <= streamPauseAt) refuse('tuning.streamAbortAt', `must be above streamPauseAt, ${streamPauseAt}`)
  if (streamAbortAt > 1) refuse('tuning.streamAbortAt', 'is a share of streamBufferBytes: at most 1')
  const least = Math.ceil((STREAM_WINDOW_BYTES + streamWriteBytes) / (streamAbortAt - streamPauseAt))
  if (streamBufferBytes < least) {
    refuse('tuning.streamBufferBytes', `must be at least ${least}: what is on its way when a writer pauses needs room`)
  }
}
