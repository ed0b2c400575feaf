import { HermesError } from '@hermes-peer/protocol'
import type { FoundPeer } from '../../network/network.ts'
import { onAbort } from '../../signals.ts'
import { createRedisClient, type RedisClient } from './redis-client.ts'
import {
  type DirectoryContext,
  type DirectoryFactory,
  type DirectorySource,
  MOST_ADDRESSES,
  MOST_FOUND,
  type Registration,
} from './source.ts'
import { closed, unreachable } from './unreachable.ts'

export interface RedisDirectoryOptions {
  /** Begins every key, so that several systems can share one Redis. Default `hermes`. */
  prefix?: string
}

/** First wait before the server is connected to again, and longest, ms: with full jitter, doubling. */
const FIRST_WAIT_MS = 100
const LONGEST_WAIT_MS = 5_000
/** A list of providers to which nobody has added for this time is forgotten, ms: longer than any sensible lease. */
const INDEX_MS = 24 * 60 * 60 * 1000
/** Longest text of one registration that is looked at. */
const MOST_TEXT = 16 * 1024

/**
 * A Redis (`redis://` or `rediss://`, with user and password where it needs them) as directory: it sees who offers what, and no message.
 * Registrations run out there by themselves. While it is down nothing waits for it: look-ups go to the other directories, and it is
 * connected to again, and written to anew, once it is back. Needs the package `@redis/client`. Throws `INVALID_OPTION`.
 */
export function redisDirectory(url: string, options: RedisDirectoryOptions = {}): DirectoryFactory {
  const refuse = (why: string, cause?: unknown): never => {
    throw new HermesError('INVALID_OPTION', {
      message: `redisDirectory: ${why}`,
      details: { field: 'directories' },
      ...(cause === undefined ? {} : { cause }),
    })
  }
  const { prefix = 'hermes', ...rest } = options
  const other = Object.keys(rest)[0]
  if (other !== undefined) refuse(`${other} is not an option; prefix is`)
  if (typeof prefix !== 'string' || !/^[\x21-\x7e]{1,64}$/.test(prefix))
    refuse('prefix must be 1 to 64 printable characters')
  let parsed: URL
  try {
    parsed = new URL(url)
  } catch {
    // The text may hold a password, so it is not shown.
    return refuse('url must be a URL like redis://10.0.0.5:6379')
  }
  if (parsed.protocol !== 'redis:' && parsed.protocol !== 'rediss:') refuse('url must begin with redis:// or rediss://')
  const name = `redis ${parsed.hostname}:${parsed.port === '' ? '6379' : parsed.port}`
  return (context) => new RedisSource({ url, prefix, name, context })
}

interface RedisSourceOptions {
  readonly url: string
  readonly prefix: string
  readonly name: string
  readonly context: DirectoryContext
}

/**
 * `<prefix>:<network>:peer:<peer id>` holds a registration and expires with its lease; `<prefix>:<network>:capability:<name>` is a
 * sorted set of peer ids by the end of their lease, in ms of the server's clock, so that no clock of a peer matters.
 */
class RedisSource implements DirectorySource {
  readonly name: string
  readonly leased = true
  readonly #options: RedisSourceOptions
  #client: RedisClient | undefined
  #registration: Registration | undefined
  /** Why the server could not be spoken to last. */
  #fault: unknown = 'not connected yet'
  #closed = false

  constructor(options: RedisSourceOptions) {
    this.#options = options
    this.name = options.name
  }

  async open(): Promise<void> {
    this.#check()
    const { url, context } = this.#options
    const client = await createRedisClient({
      url,
      waitMs: (failures) =>
        Math.ceil(context.random.next() * Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(failures, 20))),
    })
    if (this.#closed) return client.destroy()
    this.#client = client
    client.on('error', (error) => {
      this.#fault = error
    })
    // What was written there may be gone: it restarted, or the lease ran out meanwhile.
    client.on('ready', () => void this.#write().catch(() => undefined))
    // It goes on trying by itself until it is destroyed, which is told by a rejection.
    client.connect().catch((error: unknown) => {
      this.#fault = error
    })
  }

  async register(registration: Registration, { signal }: { signal: AbortSignal }): Promise<void> {
    this.#check()
    const before = this.#registration
    this.#registration = { ...registration, addresses: registration.addresses.slice(0, MOST_ADDRESSES) }
    const dropped = before?.capabilities.filter((name) => !registration.capabilities.includes(name)) ?? []
    await this.#asked(this.#write(dropped), signal)
  }

  async renew({ signal }: { signal: AbortSignal }): Promise<void> {
    this.#check()
    await this.#asked(this.#write(), signal)
  }

  async unregister({ signal }: { signal: AbortSignal }): Promise<void> {
    this.#check()
    const before = this.#registration
    this.#registration = undefined
    if (before) await this.#asked(this.#erase(before), signal)
  }

  async *find(capability: string, { signal }: { signal: AbortSignal }): AsyncGenerator<FoundPeer, void> {
    this.#check()
    yield* await this.#asked(this.#read(capability), signal)
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#client?.destroy()
  }

  async #write(dropped: readonly string[] = []): Promise<void> {
    const registration = this.#registration
    if (!registration) return
    const { agentId, peerId, addresses, capabilities, leaseMs } = registration
    const client = this.#connected()
    const now = await this.#now(client)
    // Taken back while the time was asked for.
    if (this.#registration !== registration) return
    const lease = String(Math.ceil(leaseMs))
    const text = JSON.stringify({ version: 1, agent_id: agentId, addresses })
    let work = client.multi().addCommand(['SET', this.#peerKey(peerId), text, 'PX', lease])
    for (const capability of capabilities) {
      const key = this.#capabilityKey(capability)
      work = work.addCommand(['ZREMRANGEBYSCORE', key, '-inf', String(now)])
      work = work.addCommand(['ZADD', key, String(now + leaseMs), peerId])
      work = work.addCommand(['PEXPIRE', key, String(Math.max(INDEX_MS, Math.ceil(leaseMs)))])
    }
    for (const capability of dropped) work = work.addCommand(['ZREM', this.#capabilityKey(capability), peerId])
    await work.exec()
  }

  async #erase({ peerId, capabilities }: Registration): Promise<void> {
    let work = this.#connected()
      .multi()
      .addCommand(['DEL', this.#peerKey(peerId)])
    for (const capability of capabilities) work = work.addCommand(['ZREM', this.#capabilityKey(capability), peerId])
    await work.exec()
  }

  async #read(capability: string): Promise<FoundPeer[]> {
    const client = this.#connected()
    const key = this.#capabilityKey(capability)
    const now = String(await this.#now(client))
    await client.sendCommand(['ZREMRANGEBYSCORE', key, '-inf', now])
    // One more than is needed: its own may be among them.
    const ids = textsIn(await client.sendCommand(['ZREVRANGE', key, '0', String(MOST_FOUND)]))
    const others = ids.filter((id) => id !== this.#options.context.peerId).slice(0, MOST_FOUND)
    if (others.length === 0) return []
    const values = (await client.sendCommand(['MGET', ...others.map((id) => this.#peerKey(id))])) as unknown[]
    return others.flatMap((peerId, index) => {
      const addresses = addressesIn(values[index])
      return addresses ? [{ peerId, addresses }] : []
    })
  }

  /** Ms of the server's clock. */
  async #now(client: RedisClient): Promise<number> {
    const [seconds, micros] = (await client.sendCommand(['TIME'])) as unknown[]
    const now = Number(seconds) * 1000 + Math.floor(Number(micros) / 1000)
    if (!Number.isSafeInteger(now)) throw new Error('it gave no time')
    return now
  }

  #connected(): RedisClient {
    if (!this.#client?.isReady) throw unreachable(this.name, this.#fault)
    return this.#client
  }

  /** The answer, or `DIRECTORY_UNREACHABLE` when it fails or the signal fires first: a server that hangs holds up nobody. */
  #asked<T>(answer: Promise<T>, signal: AbortSignal): Promise<T> {
    return new Promise((resolve, reject) => {
      const release = onAbort(signal, () => reject(unreachable(this.name, 'no answer in time')))
      answer
        .then(resolve, (error: unknown) => reject(this.#closed ? closed(this.name) : unreachable(this.name, error)))
        .finally(release)
    })
  }

  #check(): void {
    if (this.#closed) throw closed(this.name)
  }

  #peerKey(peerId: string): string {
    return `${this.#options.prefix}:${this.#options.context.networkName}:peer:${peerId}`
  }

  #capabilityKey(capability: string): string {
    return `${this.#options.prefix}:${this.#options.context.networkName}:capability:${capability}`
  }
}

const textsIn = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : []

/** Addresses of a registration, undefined when it is none: others write there too. */
function addressesIn(value: unknown): string[] | undefined {
  if (typeof value !== 'string' || value.length > MOST_TEXT) return undefined
  try {
    const { addresses } = JSON.parse(value) as { addresses?: unknown }
    const texts = textsIn(addresses).slice(0, MOST_ADDRESSES)
    return texts.length > 0 ? texts : undefined
  } catch {
    return undefined
  }
}
