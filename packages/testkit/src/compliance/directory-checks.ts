import assert from 'node:assert/strict'
import type { FoundPeer } from 'hermes-peer'
import type { DirectoryHome, DirectoryMember } from './directory.ts'

type Member = (name: string) => Promise<DirectoryMember>

/** For what is not meant to end by it. */
const patient = (): { signal: AbortSignal } => ({ signal: new AbortController().signal })

async function all(member: DirectoryMember, capability: string, options = patient()): Promise<FoundPeer[]> {
  const found: FoundPeer[] = []
  for await (const peer of member.source.find(capability, options)) found.push(peer)
  return found
}

const LOOKS = 500

const idsOf = (peers: readonly FoundPeer[]): string[] => peers.map(({ peerId }) => peerId).sort()
const ids = (...members: readonly DirectoryMember[]): string[] => members.map(({ self }) => self.peerId).sort()

async function offer(home: DirectoryHome, member: DirectoryMember, ...capabilities: string[]): Promise<void> {
  if (home.offer) return home.offer(member, capabilities)
  const leaseMs = home.lease?.ms ?? 60_000
  await member.source.register({ ...member.self, capabilities, leaseMs }, patient())
}

/** Looks until exactly these are found: what was told may be on its way. */
async function finds(
  home: DirectoryHome,
  member: DirectoryMember,
  capability: string,
  expected: readonly string[],
): Promise<FoundPeer[]> {
  for (let look = 1; ; look++) {
    const found = await all(member, capability)
    if (idsOf(found).join() === [...expected].sort().join()) return found
    if (look >= (home.looks ?? LOOKS)) assert.deepEqual(idsOf(found), [...expected].sort())
    await home.pause()
  }
}

const unreachable = (error: { code?: string; retryable?: boolean; message: string; hint?: string }) => {
  assert.equal(error.code, 'DIRECTORY_UNREACHABLE', error.message)
  assert.equal(error.retryable, true)
  assert.ok(error.message.length > 0 && error.hint)
  return true
}

export const DIRECTORY_CHECKS: Readonly<Record<string, (home: DirectoryHome, member: Member) => Promise<void>>> = {
  async 'finds who offers a capability, with the addresses to dial'(home, member) {
    const [a, b] = [await member('a'), await member('b')]
    await offer(home, a, 'log.search', 'report@2')
    const [found, ...others] = await finds(home, b, 'log.search', ids(a))
    assert.deepEqual(others, [])
    assert.deepEqual(found?.addresses, a.self.addresses)
    await finds(home, b, 'report@2', ids(a))
  },

  async 'ends with nothing when nobody offers it: that is an answer'(home, member) {
    const [a, b] = [await member('a'), await member('b')]
    await offer(home, a, 'work')
    await finds(home, b, 'work', ids(a))
    assert.deepEqual(await all(b, 'work.more'), [])
    assert.deepEqual(await all(b, 'wor'), [])
    assert.deepEqual(await all(b, 'work@2'), [])
  },

  async 'names all who offer it, each once, and never the one that asks'(home, member) {
    const [a, b, c] = [await member('a'), await member('b'), await member('c')]
    await offer(home, a, 'work', 'only-a')
    await offer(home, b, 'work')
    await offer(home, c, 'other')
    await finds(home, c, 'work', ids(a, b))
    await finds(home, a, 'work', ids(b))
    await finds(home, a, 'other', ids(c))
    assert.deepEqual(await all(a, 'only-a'), [])
  },

  async 'takes a new registration in place of the old one'(home, member) {
    const [a, b] = [await member('a'), await member('b')]
    await offer(home, a, 'old', 'kept')
    await finds(home, b, 'old', ids(a))
    await offer(home, a, 'kept', 'new')
    await finds(home, b, 'new', ids(a))
    await finds(home, b, 'kept', ids(a))
    if (home.withdraws !== false) await finds(home, b, 'old', [])
  },

  async 'renews what is registered, also more than once'(home, member) {
    const [a, b] = [await member('a'), await member('b')]
    await a.source.renew(patient())
    await offer(home, a, 'work')
    await a.source.renew(patient())
    await Promise.all([a.source.renew(patient()), a.source.renew(patient())])
    await finds(home, b, 'work', ids(a))
  },

  async 'forgets what is taken back'(home, member) {
    const [a, b] = [await member('a'), await member('b')]
    await a.source.unregister(patient())
    if (home.withdraws === false || home.offer) return
    await offer(home, a, 'work')
    await offer(home, b, 'work')
    const c = await member('c')
    await finds(home, c, 'work', ids(a, b))
    await a.source.unregister(patient())
    await a.source.unregister(patient())
    // A renewal that was under way must not bring it back.
    await a.source.renew(patient())
    await finds(home, c, 'work', ids(b))
  },

  async 'forgets whoever does not renew, and keeps who does'(home, member) {
    if (!home.lease) return
    const [a, b, c] = [await member('a'), await member('b'), await member('c')]
    await offer(home, a, 'work')
    await offer(home, b, 'work')
    for (let step = 0; step < 4; step++) {
      await home.lease.pass(home.lease.ms / 2)
      await b.source.renew(patient())
    }
    await finds(home, c, 'work', ids(b))
  },

  async 'tells that it cannot be reached from that nobody offers it, and is there again by itself'(home, member) {
    if (!home.outage) return
    const [a, b] = [await member('a'), await member('b')]
    await offer(home, a, 'work')
    await finds(home, b, 'work', ids(a))
    const { outage } = home
    await outage.begin()
    await assert.rejects(all(b, 'work', { signal: outage.enough() }), unreachable)
    await assert.rejects(all(b, 'nobody-offers-this', { signal: outage.enough() }), unreachable)
    if (a.source.leased) await assert.rejects(a.source.renew({ signal: outage.enough() }), unreachable)
    await outage.end()
    for (let look = 1; ; look++) {
      const back = await a.source.renew(patient()).then(
        () => all(b, 'work').catch(() => []),
        () => [],
      )
      if (idsOf(back).join() === ids(a).join()) break
      assert.ok(look < (home.looks ?? LOOKS), 'it does not come back')
      await home.pause()
    }
    assert.deepEqual(await all(b, 'nobody-offers-this'), [])
  },

  async 'ends with the signal'(_home, member) {
    const a = await member('a')
    const stop = new AbortController()
    stop.abort(new Error('enough'))
    await all(a, 'work', { signal: stop.signal }).catch(unreachable)
  },

  async 'bounds what it names for one capability'(home, member) {
    if (home.offer || home.withdraws === false) return
    const asker = await member('asker')
    for (let at = 0; at < 100; at++) {
      const { source, self } = await member(`m${at}`)
      await source.register({ ...self, capabilities: ['crowd'], leaseMs: 60_000 }, patient())
    }
    const found = await all(asker, 'crowd')
    assert.ok(found.length <= 64 && found.length >= 20, String(found.length))
    assert.equal(new Set(idsOf(found)).size, found.length)
  },

  async 'is over after close, at once and for good'(home, member) {
    const [a, b] = [await member('a'), await member('b')]
    await offer(home, a, 'work')
    await Promise.all([a.source.close(), a.source.close()])
    await a.source.close()
    const stopped = { code: 'STOPPED' }
    const registration = { ...a.self, capabilities: ['work'], leaseMs: 60_000 }
    await assert.rejects(a.source.register(registration, patient()), stopped)
    await assert.rejects(a.source.renew(patient()), stopped)
    await assert.rejects(a.source.unregister(patient()), stopped)
    await assert.rejects(all(a, 'work'), stopped)
    // Others go on.
    assert.deepEqual(await all(b, 'nobody-offers-this'), [])
  },
}
