import { multiaddr } from '@multiformats/multiaddr'
import { describe, expect, it } from 'vitest'
import { usableAddresses } from '../../src/network/libp2p/addresses.ts'
import { reasonOf } from '../../src/network/libp2p/dial-reason.ts'
import { started } from './support.ts'

const usable = (listeners: string[][]): string[] =>
  usableAddresses(listeners.map((bound) => bound.map((text) => multiaddr(text)))).map(String)

describe('the addresses that are announced', () => {
  it('leave out loopback where a listener is bound to other interfaces too', () => {
    expect(usable([['/ip4/127.0.0.1/tcp/1', '/ip4/10.0.0.7/tcp/1', '/ip4/8.8.8.8/tcp/1']])).toEqual([
      '/ip4/10.0.0.7/tcp/1',
      '/ip4/8.8.8.8/tcp/1',
    ])
    expect(usable([['/ip6/::1/tcp/1', '/ip6/2001:db8::1/tcp/1']])).toEqual(['/ip6/2001:db8::1/tcp/1'])
  })

  it('keep loopback where that is what is listened on, or all there is', () => {
    expect(usable([['/ip4/127.0.0.1/tcp/1'], ['/ip4/127.0.0.1/tcp/2', '/ip4/10.0.0.7/tcp/2']])).toEqual([
      '/ip4/127.0.0.1/tcp/1',
      '/ip4/10.0.0.7/tcp/2',
    ])
    expect(usable([['/ip4/127.0.0.1/tcp/1', '/ip4/127.0.1.1/tcp/1']])).toHaveLength(2)
    expect(usable([])).toEqual([])
  })

  it('are those of the interfaces for a listener on all of them', async () => {
    const addresses = (await started({ listen: ['/ip4/0.0.0.0/tcp/0'] })).addresses()
    expect(addresses.length).toBeGreaterThan(0)
    expect(addresses.join()).not.toContain('0.0.0.0')
    const outside = addresses.filter((address) => !address.includes('/127.'))
    expect(outside.length === 0 || outside.length === addresses.length).toBe(true)
  })
})

describe('the reason why an address did not work', () => {
  const coded = (code: string) => Object.assign(new Error('text'), { code })
  const named = (name: string, message = 'text') => Object.assign(new Error(message), { name })

  it.each([
    [coded('ECONNREFUSED'), 'refused'],
    [coded('ECONNRESET'), 'denied'],
    [coded('EHOSTUNREACH'), 'host unreachable'],
    [named('TimeoutError'), 'timeout'],
    [named('UnsupportedProtocolError'), 'unsupported'],
    [
      named('EncryptionFailedError', 'Payload identity key a does not match expected remote identity key b'),
      'wrong peer',
    ],
    [named('EncryptionFailedError', 'read ECONNRESET'), 'denied'],
    [new Error('something else'), 'something else'],
    ['no error at all', 'no error at all'],
    [new Event('close'), 'denied'],
  ])('of %s is %s', (error, reason) => {
    expect(reasonOf(error)).toBe(reason)
  })

  it('is kept short', () => {
    expect(reasonOf(new Error('x'.repeat(10_000)))).toHaveLength(200)
  })
})
