import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { capability } from '@hermes-peer/protocol'
import { describe, expect, it, onTestFinished } from 'vitest'
import * as z from 'zod'
import type { Peer } from '../../src/api.ts'
import { createPeer } from '../../src/create-peer.ts'
import {
  certifyAgent,
  certifyInstance,
  makeOrganisationKey,
  makeRevocation,
  makeTeamKey,
} from '../../src/identity/authority.ts'
import { loadOrCreateKey } from '../../src/identity/key-file.ts'
import { systemRandom } from '../../src/random.ts'
import { eventsOf } from '../calls/team.ts'
import { until } from '../waiting.ts'
import { temporaryFolder } from './support.ts'

const work = capability('work', { description: 'Works.', input: z.number(), output: z.number(), effects: 'once' })

/** An organisation with a team, and agents of both, as their owners would make them: everything is a file. */
function organisationFiles() {
  const folder = temporaryFolder()
  const at = (name: string) => join(folder, name)
  makeOrganisationKey(at('acme.key'))
  makeTeamKey({ organisation: at('acme.key'), path: at('ops.key'), network: 'acme', team: 'ops', prefix: 'ops' })
  const certify = (agentId: string, issuer: string): string => {
    const name = agentId.replace('/', '-')
    loadOrCreateKey(at(`${name}.pem`), systemRandom())
    const path = at(`${name}.cert`)
    certifyAgent({ issuer: at(issuer), network: 'acme', agentId, key: at(`${name}.pem`), team: 'ops', path })
    return path
  }
  return { at, certify }
}

async function start(agentId: string, certificate: string, more: Partial<Parameters<typeof createPeer>[0]> = {}) {
  const org = join(certificate, '../acme.key.pub')
  const everyone = { principal: '*', capability: '*' }
  const policy = { serve: [everyone], call: [everyone] }
  const tuning = { retiredLinkMs: 300, presenceMs: 1000 }
  const peer = createPeer({
    tuning,
    agentId,
    network: 'acme',
    preset: 'server',
    certificate,
    trust: { org },
    policy,
    ...more,
  })
  const events = eventsOf(peer)
  peer.provide(work, async (n) => n)
  await peer.start()
  onTestFinished(() => peer.stop({ drainMs: 0 }))
  return { peer, events, address: peer.addresses[0] as string }
}

/** A port that was free a moment ago. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

const peerIdOf = (peer: Peer): string => (peer.addresses[0] as string).split('/').at(-1) as string

describe('agents of an organisation over libp2p', () => {
  it('threat: old key — calls go on while the provider changes its key, which it finds again after a restart', async () => {
    const { at, certify } = organisationFiles()
    const listen = [`/ip4/127.0.0.1/tcp/${await freePort()}`]
    const one = await start('ops/one', certify('ops/one', 'ops.key'), { listen })
    const two = await start('two', certify('two', 'acme.key'), { bootstrap: [one.address] })
    await until(() => two.events.of('link.up').length === 1, 'a link')
    const before = peerIdOf(one.peer)
    const ends: Promise<number>[] = []
    let rotating: Promise<unknown> | undefined
    for (let n = 0; n < 200; n++) {
      if (n === 60) rotating = one.peer.rotate()
      ends.push(two.peer.call(work, n, { agent: 'ops/one' }))
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(await Promise.all(ends)).toEqual(ends.map((_, n) => n))
    expect(await rotating).toMatchObject({ serial: 1 })
    const after = peerIdOf(one.peer)
    expect(after).not.toBe(before)
    expect(await two.peer.call(work, 7, { agent: 'ops/one' })).toBe(7)
    expect(existsSync(at('ops-one.pem.instance'))).toBe(true)
    await until(() => one.events.of('identity.retired').length === 1, 'the end of the old node')
    expect(await two.peer.call(work, 8, { agent: 'ops/one' })).toBe(8)
    // The port that was asked for is that of the new key now.
    await until(() => one.peer.addresses.includes(`${listen[0]}/p2p/${after}`), 'the port')
    const newcomer = await start('late', certify('late', 'acme.key'))
    expect(await newcomer.peer.connect(listen[0] as string)).toBe('ops/one')
    await one.peer.stop()
    const again = await start('ops/one', at('ops-one.cert'), { bootstrap: [two.address] })
    expect(peerIdOf(again.peer)).toBe(after)
    await until(() => two.events.of('link.up').length >= 2)
    expect(await two.peer.call(work, 9, { agent: 'ops/one' })).toBe(9)
  })

  it('threat: stolen key — a revoked key is cut off at each peer at once, and refused when it comes back', async () => {
    const { at, certify } = organisationFiles()
    const one = await start('one', certify('one', 'acme.key'))
    const two = await start('two', certify('two', 'acme.key'), { bootstrap: [one.address] })
    const thief = await start('three', certify('three', 'acme.key'), { bootstrap: [one.address, two.address] })
    await until(() => [one, two].every(({ events }) => events.of('link.up').some((up) => up.agentId === 'three')))
    await until(() => one.events.of('directory.joined').some(({ agentId }) => agentId === 'two'))
    const key = thief.peer.fingerprint
    const revocation = makeRevocation({
      signer: at('acme.key'),
      network: 'acme',
      agentId: 'three',
      key,
      reason: 'stolen',
    })
    await one.peer.revoke(revocation)
    for (const { events } of [one, two]) {
      await until(
        () => events.of('link.down').some((down) => down.agentId === 'three' && down.code === 'NOT_ALLOWED'),
        'the cut',
        5000,
      )
    }
    await expect(thief.peer.connect(two.address)).rejects.toMatchObject({ code: 'NOT_ALLOWED', remote: true })
    expect(await one.peer.call(work, 1, { agent: 'two' })).toBe(1)
    await expect(one.peer.call(work, 1, { agent: 'three', timeoutMs: 1000 })).rejects.toThrow()
  })

  it('an agent whose key is offline runs under a key of its instance, and changes it by files', async () => {
    const { at, certify } = organisationFiles()
    const certificate = certify('one', 'acme.key')
    const instance = (name: string) =>
      certifyInstance({ agentKey: at('one.pem'), network: 'acme', agentId: 'one', certificate, path: at(name) })
    const first = instance('first')
    const one = await start('one', at('first.cert'), { identity: at('first') })
    const two = await start('two', certify('two', 'acme.key'), { bootstrap: [one.address] })
    expect(await two.peer.call(work, 1, { agent: 'one' })).toBe(1)
    const files = { identity: at('next'), certificate: at('next.cert') }
    await expect(one.peer.rotate(files)).rejects.toMatchObject({ code: 'INVALID_KEY_FILE' })
    const next = instance('next')
    expect(await one.peer.rotate(files)).toMatchObject({ fingerprint: next.fingerprint })
    expect(next.fingerprint).not.toBe(first.fingerprint)
    expect(await two.peer.call(work, 2, { agent: 'one' })).toBe(2)
    // The one before it is not taken back.
    await expect(one.peer.rotate({ identity: at('first'), certificate: at('first.cert') })).rejects.toMatchObject({
      code: 'INVALID_CERTIFICATE',
    })
  })
})
