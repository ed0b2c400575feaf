import { HermesError } from '@hermes-peer/protocol'

/** What a relay gives to others. */
export interface RelayServerOptions {
  /** Also for peers that are not admitted. Default false: only agents that trust knows, or that have a link, get a slot. */
  open?: boolean
  /** Peers that may hold a slot at a time, each with one connection. Default 128. */
  reservations?: number
  /** Of these, from one address. Default 16; without `open`, all of them: the agents of one site share an address. */
  reservationsPerAddress?: number
  /** A slot is free again this long after it was last asked for, ms. Default one hour; its holder asks every 30 s. */
  reservationMs?: number
  /**
   * Bytes that one relayed connection may carry, both directions together; then it ends, and is made anew when it is needed.
   * Default 1 GiB: agents keep a link for hours, and libp2p's own 128 KiB is one answer.
   */
  connectionBytes?: number
  /** How long one relayed connection may last, ms. Default 24 hours, for the same reason. */
  connectionMs?: number
}

export interface RelayOptions {
  /**
   * At most 4 relays through which this peer can be called though nobody can dial it: multiaddrs that end in the peer id of
   * the relay. It may then listen on nothing (`listen: []`). The relay carries what the two ends encrypt for each other.
   */
  via?: readonly string[]
  /** Be a relay for others; `true` is with every default. */
  server?: boolean | RelayServerOptions
}

/** The options with every default filled in. */
export interface RelaySettings {
  readonly via: readonly string[]
  readonly server: Required<RelayServerOptions> | undefined
}

const MOST_RELAYS = 4
const ADDRESS = /^\/(ip4|ip6|dns|dns4|dns6)\/[^/\s]+(\/[^/\s]+)*\/p2p\/[1-9A-HJ-NP-Za-km-z]+$/
const LEAST: Readonly<Record<string, number>> = {
  reservations: 1,
  reservationsPerAddress: 1,
  reservationMs: 2000,
  connectionBytes: 65_536,
  connectionMs: 1000,
}
/** The longest that a timer can be told. */
const MOST = { reservationMs: 2 ** 31 - 1, connectionMs: 2 ** 31 - 1 } as Readonly<Record<string, number>>

/** Checks once. Throws `INVALID_OPTION` or `INVALID_ADDRESS` that names the field. */
export function relayOf(value: unknown): RelaySettings {
  if (value === undefined) return { via: [], server: undefined }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    refuse('relay', 'must be an object with via or server')
  const { via, server, ...rest } = value as RelayOptions & Record<string, unknown>
  known('relay', rest, 'via and server')
  if (via !== undefined && (!Array.isArray(via) || via.length > MOST_RELAYS)) {
    refuse('relay.via', `must be a list of at most ${MOST_RELAYS} multiaddrs`)
  }
  for (const [index, address] of (via ?? []).entries()) {
    if (typeof address === 'string' && ADDRESS.test(address) && !address.includes('/p2p-circuit')) continue
    throw new HermesError('INVALID_ADDRESS', {
      message: `relay.via[${index}]: ${JSON.stringify(address)?.slice(0, 120)} is not a multiaddr that ends in /p2p/<peer id of the relay>`,
      hint: 'Take it from the addresses that the relay says when it starts.',
      details: { field: `relay.via[${index}]` },
    })
  }
  return { via: via ?? [], server: serverOf(server) }
}

function serverOf(value: unknown): Required<RelayServerOptions> | undefined {
  if (value === undefined || value === false) return undefined
  if (value !== true && (typeof value !== 'object' || value === null || Array.isArray(value))) {
    refuse('relay.server', 'must be true, false or an object with limits')
  }
  const { open, ...limits } = (value === true ? {} : value) as RelayServerOptions
  if (open !== undefined && typeof open !== 'boolean') refuse('relay.server.open', 'must be true or false')
  const { reservations, reservationsPerAddress, reservationMs, connectionBytes, connectionMs, ...rest } = limits
  known('relay.server', rest, `open, ${Object.keys(LEAST).join(', ')}`)
  for (const [key, number] of Object.entries(limits as Record<string, unknown>)) {
    const [least, most] = [LEAST[key] as number, MOST[key] ?? Number.MAX_SAFE_INTEGER]
    if (number === undefined) continue
    if (!Number.isSafeInteger(number) || (number as number) < least || (number as number) > most) {
      refuse(`relay.server.${key}`, `must be a whole number from ${least} to ${most}`)
    }
  }
  const slots = reservations ?? 128
  return {
    open: open ?? false,
    reservations: slots,
    reservationsPerAddress: reservationsPerAddress ?? (open ? 16 : slots),
    reservationMs: reservationMs ?? 60 * 60_000,
    connectionBytes: connectionBytes ?? 1024 ** 3,
    connectionMs: connectionMs ?? 24 * 60 * 60_000,
  }
}

function known(field: string, rest: object, names: string): void {
  const other = Object.keys(rest)[0]
  if (other !== undefined) refuse(`${field}.${other}`, `is not an option; known are ${names}`)
}

function refuse(field: string, why: string): never {
  throw new HermesError('INVALID_OPTION', { message: `${field} ${why}`, details: { field } })
}
