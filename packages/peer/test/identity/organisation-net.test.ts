import { capability, type SignedDocument, type SigningKey, signRevocation, toFile } from '@hermes-peer/protocol'
import { type TestNetwork, type TestOpened, testNetwork } from '@hermes-peer/testkit'
import { describe, expect, it, onTestFinished } from 'vitest'
import * as z from 'zod'
import type { Peer } from '../../src/api.ts'
import { organisation } from '../../src/identity/organisation.ts'
import type { AnyEvent } from '../../src/telemetry/events.ts'
import { certificateOf, instanceOf, ORGANISATION } from './organisation-support.ts'
import { keyNamed } from './support.ts'

const work = capability('work', { description: 'Works.', input: z.string(), output: z.string(), effects: 'none' })

/** How an agent differs from the others: which key it runs under, and what it shows. */
interface Special {
  key?: SigningKey
  certificates?: readonly SignedDocument[]
}

interface Scene {
  readonly net: TestNetwork
  peer(agentId: string, options?: Parameters<TestNetwork['peer']>[1]): Promise<Peer>
  of<T extends AnyEvent['type']>(at: string, type: T): Extract<AnyEvent, { type: T }>[]
  seconds(count: number): Promise<void>
}

/** A network whose agents trust the organisation alone; each is certified under the key that is named like it. */
function scene(special: (agentId: string) => Special | undefined = () => undefined): Scene {
  const events: { at: string; event: AnyEvent }[] = []
  const now = (agentId: string) => special(agentId) ?? {}
  const net = testNetwork({
    seed: 21,
    key: (agentId) => now(agentId).key ?? keyNamed(agentId),
    opened: (agentId, { clock, keys }): TestOpened => {
      const own = now(agentId)
      return {
        agentKey: keyNamed(agentId).publicKey,
        certificates: own.certificates ?? [certificateOf(agentId)],
        ...(own.key ? {} : { agentSigner: keyNamed(agentId) }),
        trust: organisation({ key: ORGANISATION.publicKey, network: 'default', clock, toleranceMs: 600_000, keys }),
      }
    },
  })
  net.onEvent((at, event) => events.push({ at, event }))
  onTestFinished(() => net[Symbol.asyncDispose]())
  return {
    net,
    async peer(agentId, options) {
      const peer = await net.peer(agentId, options)
      return peer.provide(work, async (input) => `${input} by ${agentId}`)
    },
    of: (at, type) =>
      events.filter((one) => one.at === at && one.event.type === type).map(({ event }) => event) as never,
    seconds: (count) => net.advance(`${count}s`),
  }
}

describe('agents of an organisation', () => {
  it('call each other with nothing but the key of the organisation in common', async () => {
    const { net, peer, seconds } = scene()
    await peer('ops/a')
    const b = await peer('billing/b')
    await seconds(3)
    expect(await net.until(b.call(work, 'x', { agent: 'ops/a' }))).toBe('x by ops/a')
  })

  it('run under an instance key while the agent key is elsewhere', async () => {
    const { net, peer, of, seconds } = scene((agentId) =>
      agentId === 'a'
        ? { key: keyNamed('instance'), certificates: [certificateOf('a'), instanceOf('a', 'instance')] }
        : undefined,
    )
    const a = await peer('a')
    const b = await peer('b')
    await seconds(15)
    expect(a.fingerprint).toBe(keyNamed('a').publicKey.fingerprint)
    expect(await net.until(b.call(work, 'x', { agent: 'a' }))).toBe('x by a')
    expect(await net.until(b.manifest('a'))).toMatchObject({ agent_id: 'a' })
    expect(of('b', 'presence.refused')).toEqual([])
    await expect(a.rotate()).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    await expect(a.revoke({ key: a.fingerprint, reason: '' })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })

  it('are refused without a certificate of it, whatever key they have', async () => {
    const { net, peer, of, seconds } = scene((agentId) => (agentId === 'b' ? { certificates: [] } : undefined))
    await peer('a')
    const b = await peer('b')
    await seconds(15)
    expect(of('a', 'link.up')).toEqual([])
    expect(of('a', 'handshake.refused')[0]).toMatchObject({ code: 'NOT_ALLOWED', by: 'us' })
    await expect(net.until(b.call(work, 'x', { agent: 'a' }))).rejects.toMatchObject({ code: expect.any(String) })
  })
})

describe('policy over an organisation', () => {
  it('judges by team and roles of the certificates, of who is linked and of who is known by hops alone', async () => {
    const { net, peer, seconds } = scene((agentId) =>
      agentId === 'guest' ? { certificates: [certificateOf('guest', { roles: [] })] } : undefined,
    )
    const policy = { version: 1, serve: [{ effect: 'allow', principal: 'role:reader', capability: 'work' }] } as const
    await peer('p', { policy })
    const f = await net.peer('f')
    f.provide(work, (_, ctx) => ctx.forward('p') as never)
    const [reader, guest] = [await peer('reader'), await peer('guest')]
    await seconds(5)
    for (const agent of ['p', 'f']) {
      expect(await net.until(reader.call(work, 'x', { agent })), agent).toBe('x by p')
      await expect(net.until(guest.call(work, 'x', { agent })), agent).rejects.toMatchObject({ code: 'POLICY_DENIED' })
    }
  })
})

describe('threat: stolen key', () => {
  const TEN = Array.from({ length: 10 }, (_, index) => `p${index}`)

  const SOME = ['p3', 'p4', 'p6', 'p8']

  /** Peers that have all heard of each other, linked in part. */
  async function crowd(ids: readonly string[]) {
    const all = scene()
    const peers = new Map<string, Peer>()
    for (const agentId of ids) peers.set(agentId, await all.peer(agentId))
    await all.seconds(25)
    for (const [index, caller] of ids.entries()) {
      const agent = ids[(index + 3) % ids.length] as string
      await all.net.until((peers.get(caller) as Peer).call(work, 'x', { agent }))
    }
    return { ...all, peers }
  }

  it('a revoked key is refused within 5 s at every peer of 10, and stays refused after their restart', async () => {
    const { net, peers, peer, of, seconds } = await crowd(TEN)
    const thief = 'p3'
    const fingerprint = keyNamed(thief).publicKey.fingerprint
    const linked = TEN.filter((id) => of(id, 'link.up').some(({ agentId }) => agentId === thief))
    expect(linked.length, 'otherwise there is nothing to cut').toBeGreaterThan(2)
    const fields = { network: 'default', agent_id: thief, key: fingerprint, serial: 1, reason: '笔记本电脑被盗' }
    await net.until((peers.get('p8') as Peer).revoke(toFile(signRevocation(fields, ORGANISATION))))
    await seconds(5)
    for (const id of TEN.filter((one) => one !== thief)) {
      expect(of(id, 'identity.revoked'), id).toMatchObject([{ agentId: thief, fingerprint }])
      const ups = of(id, 'link.up').filter(({ agentId }) => agentId === thief)
      const downs = of(id, 'link.down').filter(({ agentId }) => agentId === thief)
      expect(downs.length, `links of ${id} to it`).toBe(ups.length)
      const call = net.until((peers.get(id) as Peer).call(work, 'x', { agent: thief, timeoutMs: 3000 }))
      await expect(call, id).rejects.toMatchObject({ code: expect.stringMatching(/NO_CANDIDATE|PEER_UNREACHABLE/) })
    }
    // A peer that comes back still knows, before anybody could tell it.
    await net.crash('p5')
    const before = of('p5', 'link.up').length
    await peer('p5')
    await seconds(30)
    expect(
      of('p5', 'link.up')
        .slice(before)
        .map(({ agentId }) => agentId),
    ).not.toContain(thief)
    expect(of('p5', 'identity.revoked'), 'it was known from its journal').toHaveLength(1)
  })

  it('whoever was away hears of it with the first link', async () => {
    const { net, peers, peer, of, seconds } = await crowd(SOME)
    await net.crash('p6')
    const fingerprint = keyNamed('p3').publicKey.fingerprint
    const fields = { network: 'default', agent_id: 'p3', key: fingerprint, serial: 1, reason: 'lost' }
    await net.until((peers.get('p8') as Peer).revoke(toFile(signRevocation(fields, keyNamed('p3')))))
    await seconds(5)
    await peer('p6', { bootstrap: peers.get('p8')?.addresses ?? [] })
    await seconds(5)
    expect(of('p6', 'identity.revoked')).toMatchObject([{ agentId: 'p3', fingerprint }])
  })

  it('the agent goes on under its next key when that of an instance is revoked', async () => {
    const { net, peers, of, seconds } = await crowd(SOME)
    const p3 = peers.get('p3') as Peer
    const { fingerprint: second } = await net.until(p3.rotate())
    await net.until(p3.rotate())
    await seconds(2)
    await net.until(p3.revoke({ key: second, reason: 'a test of the alarm' }))
    await seconds(15)
    for (const id of SOME.filter((one) => one !== 'p3')) {
      expect(of(id, 'identity.revoked'), id).toMatchObject([{ agentId: 'p3', fingerprint: second }])
      expect(await net.until((peers.get(id) as Peer).call(work, 'y', { agent: 'p3' })), id).toBe('y by p3')
    }
    expect(of('p3', 'peer.notice').filter(({ text }) => text.includes('revoked'))).toEqual([])
  })

  it('nobody but the agent and the organisation can revoke its key', async () => {
    const { net, peers, of, seconds } = await crowd(SOME)
    const fingerprint = keyNamed('p3').publicKey.fingerprint
    const fields = { network: 'default', agent_id: 'p3', key: fingerprint, serial: 1, reason: 'spite' }
    for (const signer of ['p4', 'ghost']) {
      const document = toFile(signRevocation({ ...fields, certificates: [certificateOf('p4')] }, keyNamed(signer)))
      const revoking = net.until((peers.get('p4') as Peer).revoke(document))
      await expect(revoking).rejects.toMatchObject({ code: 'NOT_ALLOWED' })
    }
    await seconds(5)
    for (const id of SOME) expect(of(id, 'identity.revoked')).toEqual([])
  })
})

describe('threat: old key', () => {
  it('whoever has met the next key refuses the one before it once the overlap is over, also after a restart', async () => {
    const { net, peer, of, seconds } = scene()
    const tuning = { instanceOverlapMs: 1_800_000 }
    const b = await peer('b', { tuning })
    const a = await peer('a')
    await seconds(5)
    await net.until(a.rotate())
    expect(await net.until(b.call(work, 'x', { agent: 'a' }))).toBe('x by a')
    // Its process is brought back as it was before the rotation: in the overlap it is still welcome.
    const revive = async () => {
      await net.crash('a')
      await seconds(1)
      const again = await peer('a')
      await seconds(10)
      return again
    }
    await revive()
    expect(await net.until(b.call(work, 'y', { agent: 'a' }))).toBe('y by a')
    await seconds(1800)
    expect(of('b', 'link.down').at(-1), 'the link that stood then was cut').toMatchObject({ code: 'NOT_ALLOWED' })
    const before = of('b', 'link.up').length
    await revive()
    expect(of('b', 'link.up')).toHaveLength(before)
    expect(of('b', 'handshake.refused').at(-1)).toMatchObject({
      code: 'NOT_ALLOWED',
      reason: expect.stringContaining(`key ${keyNamed('a').publicKey.fingerprint} has been replaced`),
    })
    await net.crash('b')
    await peer('b', { tuning })
    await seconds(30)
    expect(of('b', 'link.up')).toHaveLength(before)
  })
})
