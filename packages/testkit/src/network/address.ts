import { HermesError } from '@hermes-peer/protocol'

/** A multiaddr as far as a memory world needs it. */
export interface Address {
  /** What a listener is known by: everything before `/p2p/`. */
  readonly transport: string
  /** `/ip4/127.0.0.1` of `/ip4/127.0.0.1/tcp/1`. */
  readonly host: string
  /** The peer that must answer there, when the address names one. */
  readonly peerId: string | undefined
}

const FORM =
  /^((\/(?:ip4|ip6|dns|dns4|dns6)\/[^/\s]+)\/tcp\/\d{1,5}|(\/memory)\/[^/\s]+)(?:\/p2p\/([1-9A-HJ-NP-Za-km-z]+))?$/

/** The longest text that is looked at. */
const MAX_LENGTH = 512

/** Undefined when the text is not an address of this world. */
export function parseAddress(text: string): Address | undefined {
  const match = text.length <= MAX_LENGTH ? FORM.exec(text) : null
  if (!match) return undefined
  const [, transport = '', ip, memory = '', peerId] = match
  return { transport, host: ip ?? memory, peerId }
}

/** Like `parseAddress`; throws `INVALID_ADDRESS` that names the address and the field. */
export function demandAddress(text: string, field: string): Address {
  const address = parseAddress(text)
  if (address) return address
  throw new HermesError('INVALID_ADDRESS', {
    message: `${field}: ${JSON.stringify(text.slice(0, 80))} is not an address of a memory network`,
    hint: 'Write it like /ip4/127.0.0.1/tcp/4001 or /memory/name; port 0 takes any free one.',
    details: { field },
  })
}

/** What the other side of a connection sees of a dialler that listens at `host`. */
export function callerAddress(host: string, port: number, peerId: string): string {
  return `${host}${host === '/memory' ? '' : '/tcp'}/${port}/p2p/${peerId}`
}
