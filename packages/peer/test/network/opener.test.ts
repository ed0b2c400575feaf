import { HermesError } from '@hermes-peer/protocol'
import type { Connection, Stream } from '@libp2p/interface'
import { multiaddr } from '@multiformats/multiaddr'
import { describe, expect, it } from 'vitest'
import { unreachable } from '../../src/network/libp2p/dial-reason.ts'
import { createOpener } from '../../src/network/libp2p/opener.ts'

const PEER = '12D3KooWLeH3RPXQBTkbXRU9AaUa82aAuytFDrEUbegVC5GxTwJ8'
const ADDRESS = multiaddr('/ip4/127.0.0.1/tcp/4001')

/** A connection whose socket is there, and that answers the next stream with what is given. */
function connection(newStream: () => Promise<Stream>): Connection {
  const peer = { toString: () => PEER }
  return { status: 'open', direction: 'outbound', remotePeer: peer, remoteAddr: ADDRESS, newStream } as never
}

const failing = (name: string) =>
  connection(() => Promise.reject(Object.assign(new Error('The connection muxer is "closed"'), { name })))
const good = () =>
  connection(async () => ({ status: 'open', protocol: '/t/1', addEventListener() {}, log() {} }) as never)

/** Opens a channel where `existing` is at hand and a dial gives `dialled`. */
async function openWith(existing: Connection, dialled?: Connection) {
  let dials = 0
  const opener = createOpener({
    ownPeerId: '12D3KooWBEcfm',
    dialer: {
      route: () => ({ peerId: PEER, addresses: [], tried: [], name: PEER }),
      async dial() {
        dials++
        if (dialled) return dialled
        throw unreachable(PEER, [])
      },
    },
    connections: () => [existing],
    life: new AbortController().signal,
    timeoutMs: 1_000,
    maxOutboundStreams: () => 4,
  })
  const outcome = await opener.open({ peerId: PEER, addresses: [] }, '/t/1', new AbortController().signal).then(
    () => 'opened',
    (error: HermesError) => error,
  )
  return { outcome, dials }
}

describe('a connection that is at hand', () => {
  it.each(['ConnectionClosedError', 'MuxerClosedError'])(
    'is replaced by a new one when it takes no more streams (%s), although its socket is still there',
    async (name) => {
      expect(await openWith(failing(name), good())).toEqual({ outcome: 'opened', dials: 1 })
    },
  )

  it('is not replaced when it refuses this one protocol: the next would do the same', async () => {
    const { outcome, dials } = await openWith(failing('UnsupportedProtocolError'), good())
    expect(outcome).toBeInstanceOf(HermesError)
    expect(outcome).toMatchObject({ details: { tried: [{ reason: 'unsupported' }] } })
    expect(dials).toBe(0)
  })
})
