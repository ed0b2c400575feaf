import { HermesError } from '@hermes-peer/protocol'

/** The commands that are used of a Redis client. */
export interface RedisClient {
  readonly isReady: boolean
  on(event: 'ready' | 'error' | 'end', listener: (error: Error) => void): unknown
  connect(): Promise<unknown>
  destroy(): void
  sendCommand(command: readonly string[]): Promise<unknown>
  multi(): RedisTransaction
}

export interface RedisTransaction {
  addCommand(command: readonly string[]): RedisTransaction
  exec(): Promise<unknown>
}

export interface RedisClientOptions {
  readonly url: string
  /** Wait before the next attempt to connect, ms, after so many failed ones. */
  readonly waitMs: (failures: number) => number
}

/** An attempt to connect, and silence of the server that ends a connection, ms. */
const CONNECT_MS = 5_000
const SILENCE_MS = 15_000
/** The server is asked for a sign of life this often, ms. */
const PING_MS = 5_000

/**
 * A client that is not connected yet, and then connects again by itself. The package is loaded only here, as most peers use no Redis.
 * Rejects with `INVALID_OPTION` when it is not installed, or the URL is none.
 */
export async function createRedisClient({ url, waitMs }: RedisClientOptions): Promise<RedisClient> {
  let redis: typeof import('@redis/client')
  try {
    redis = await import('@redis/client')
  } catch (cause) {
    throw new HermesError('INVALID_OPTION', {
      message: 'directories: redisDirectory needs the package @redis/client, which is not installed',
      hint: 'Run npm install @redis/client.',
      details: { field: 'directories' },
      cause,
    })
  }
  // Some bundlers put all of a CommonJS package under `default`.
  const { createClient } = 'createClient' in redis ? redis : (redis as { default: typeof redis }).default
  return createClient({
    url,
    // What cannot be sent now fails now: a look-up has other sources, and a registration is made again.
    disableOfflineQueue: true,
    pingInterval: PING_MS,
    socket: { connectTimeout: CONNECT_MS, socketTimeout: SILENCE_MS, reconnectStrategy: waitMs },
  }) as unknown as RedisClient
}
