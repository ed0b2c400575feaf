import { HermesError, signManifest } from '@hermes-peer/protocol'
import { Key } from 'interface-datastore'
import { describe, expect, it } from 'vitest'
import { recordKinds } from '../../src/directory/records.ts'
import { createDhtGuard } from '../../src/network/libp2p/dht-guard.ts'
import { createDhtStore } from '../../src/network/libp2p/dht-store.ts'
import { createRecordJudge } from '../../src/network/records.ts'
import { codeOf } from '../code-of.ts'
import { keyNamed, peerIdNamed } from '../directory/support.ts'
import { capabilityEntry } from '../routing/support.ts'

const HOUR = 3_600_000

function judging(most?: number) {
  const clock = { at: 1_000_000 }
  const forgotten: string[] = []
  const judge = createRecordJudge({
    kinds: recordKinds({ networkName: 'default', mostLifeMs: 48 * HOUR, toleranceMs: 600_000, now: () => clock.at }),
    now: () => clock.at,
    forget: (key) => forgotten.push(key),
    ...(most === undefined ? {} : { most }),
  })
  const record = (
    name: string,
    serial: number,
    more: { lifeMs?: number; network?: string; description?: string } = {},
  ) => {
    const key = keyNamed(name)
    const value = signManifest(
      {
        agent_id: name,
        key: key.publicKey.raw,
        network: more.network ?? 'default',
        serial,
        issued_at: clock.at,
        expires_at: clock.at + (more.lifeMs ?? HOUR),
        description: more.description ?? '查日志',
        capabilities: [capabilityEntry({ name: 'work' })],
      },
      key,
    )
    return { key: `/hermes-manifest/${key.publicKey.fingerprint}`, value }
  }
  const put = ({ key, value }: { key: string; value: Uint8Array }) => {
    try {
      judge.judge(key, value)
      return 'taken'
    } catch (error) {
      return HermesError.from(error).code
    }
  }
  return { clock, judge, record, put, forgotten }
}

describe('a record of the DHT', () => {
  it('never gives way to an older one, or to another one of the same serial', () => {
    const { record, put } = judging()
    const [one, two] = [record('a', 1), record('a', 2)]
    expect(put(two)).toBe('taken')
    expect(put(one)).toBe('EXPIRED')
    expect(put(record('a', 2, { description: 'other words' }))).toBe('EXPIRED')
    expect(put(two)).toBe('taken')
    expect(put(record('a', 3))).toBe('taken')
    expect(put(two)).toBe('EXPIRED')
  })

  it('is taken only under the name of the key that signed it, of this network, and while it lives', () => {
    const { record, put, clock } = judging()
    const [a, b] = [record('a', 1), record('b', 1)]
    expect(put({ key: a.key, value: b.value })).toBe('IDENTITY_MISMATCH')
    const forged = a.value.slice()
    forged[20] = (forged[20] as number) ^ 1
    expect(put({ key: a.key, value: forged })).not.toBe('taken')
    expect(put(record('a', 1, { network: 'other' }))).toBe('WRONG_NETWORK')
    expect(put(record('a', 1, { lifeMs: 0 }))).toBe('EXPIRED')
    expect(put(record('a', 1, { lifeMs: 50 * HOUR }))).toBe('EXPIRY_TOO_FAR')
    expect(put({ key: a.key, value: new Uint8Array(20_000) })).toBe('LIMIT_EXCEEDED')
    expect(put({ key: a.key, value: new Uint8Array() })).not.toBe('taken')
    for (const key of [
      '/other/x',
      'hermes-manifest/x',
      '/hermes-manifest/',
      '/__proto__/x',
      `/hermes-manifest/${'x'.repeat(300)}`,
    ]) {
      expect(put({ key, value: a.value })).toMatch(/INVALID_OPTION|IDENTITY_MISMATCH/)
    }
    expect(put(a)).toBe('taken')
    clock.at += HOUR
    expect(put(a)).toBe('EXPIRED')
  })

  it('pushes out none that is still good, however many come', () => {
    const { record, put, clock, forgotten } = judging(3)
    const mine = record('mine', 2)
    expect(put(mine)).toBe('taken')
    expect([record('x1', 1, { lifeMs: 10 }), record('x2', 1)].map(put)).toEqual(['taken', 'taken'])
    expect([record('x3', 1), record('x4', 1)].map(put)).toEqual(['QUEUE_FULL', 'QUEUE_FULL'])
    expect(put(record('mine', 1))).toBe('EXPIRED')
    expect(put(record('mine', 3))).toBe('taken')
    clock.at += 20
    expect(put(record('x3', 1))).toBe('taken')
    expect(forgotten).toEqual([record('x1', 1).key])
  })
})

describe('the guard of the DHT', () => {
  const guarding = () => {
    const clock = { at: 0 }
    const cut: string[] = []
    const guard = createDhtGuard({ now: () => clock.at, cutOff: (peerId) => cut.push(peerId) })
    const send = (peerId: string, type: string, more: object = {}) => {
      try {
        guard.judge(peerId, { type, ...more })
        return true
      } catch (error) {
        expect(
          codeOf(() => {
            throw error
          }),
        ).toMatch(/BUSY|LIMIT_EXCEEDED/)
        return false
      }
    }
    const count = (peerId: string, type: string, times: number, more?: (at: number) => object) =>
      Array.from({ length: times }, (_, at) => send(peerId, type, more?.(at))).filter(Boolean).length
    return { clock, cut, guard, send, count }
  }

  it('lets each peer have its burst, and then so many a second; another one is not touched', () => {
    const { clock, count } = guarding()
    expect(count('a', 'ADD_PROVIDER', 2000)).toBe(512)
    expect(count('b', 'ADD_PROVIDER', 100)).toBe(100)
    clock.at += 10_000
    expect(count('a', 'ADD_PROVIDER', 2000)).toBe(40)
    expect(count('a', 'PUT_VALUE', 100)).toBe(32)
    for (const type of ['FIND_NODE', 'GET_PROVIDERS', 'GET_VALUE', 'PING']) expect(count('a', type, 1000)).toBe(1000)
  })

  it('bounds all of them together, as identities cost nothing', () => {
    const { count } = guarding()
    let taken = 0
    for (let peer = 0; peer < 1000; peer++) taken += count(`p${peer}`, 'ADD_PROVIDER', 20)
    expect(taken).toBe(4096)
  })

  it('cuts off who does not stop, once, and lets it come back after a minute', () => {
    const { clock, count, cut, guard } = guarding()
    count('a', 'ADD_PROVIDER', 512 + 4095)
    expect(cut).toEqual([])
    count('a', 'ADD_PROVIDER', 5000)
    expect(cut).toEqual(['a'])
    expect([guard.denies('a'), guard.denies('b')]).toEqual([true, false])
    clock.at += 60_000
    expect(guard.denies('a')).toBe(false)
    expect(count('a', 'ADD_PROVIDER', 2000)).toBe(240)
  })

  it('takes no message with too much in it, and no more than so many keys of one peer', () => {
    const { clock, count, send } = guarding()
    expect(send('a', 'ADD_PROVIDER', { providers: Array(5).fill({ multiaddrs: [] }) })).toBe(false)
    expect(send('a', 'ADD_PROVIDER', { providers: [{ multiaddrs: Array(33).fill(0) }] })).toBe(false)
    expect(send('a', 'ADD_PROVIDER', { key: new Uint8Array(257) })).toBe(false)
    let taken = 0
    for (let minute = 0; minute < 5; minute++) {
      taken += count('a', 'PUT_VALUE', 30, (at) => ({ key: Buffer.from(`/k/${minute}-${at}`) }))
      clock.at += 60_000
    }
    expect(taken).toBe(64)
    expect(send('a', 'PUT_VALUE', { key: Buffer.from('/k/0-0') })).toBe(true)
  })
})

describe('the store of the DHT', () => {
  const place = (capability: number | string, peer: string) => new Key(`/dht/provider/${capability}/${peer}`)
  const keys = async (store: ReturnType<typeof createDhtStore>, prefix: string) => {
    const found: string[] = []
    for await (const { key } of store.query({ prefix })) found.push(key.toString())
    return found
  }
  const fill = (store: ReturnType<typeof createDhtStore>, entries: Iterable<Key>) => {
    let taken = 0
    for (const key of entries) {
      try {
        void store.put(key, Uint8Array.of(1))
        taken++
      } catch (error) {
        expect(error).toMatchObject({ code: 'QUEUE_FULL' })
      }
    }
    return taken
  }

  it('keeps what it is told, by capability, and beside it everything else', async () => {
    const store = createDhtStore('own')
    await store.put(place('c1', 'a'), Uint8Array.of(1))
    await store.put(place('c1', 'b'), Uint8Array.of(2))
    await store.put(place('c2', 'a'), Uint8Array.of(3))
    await store.put(new Key('/peers/a'), Uint8Array.of(4))
    expect(await keys(store, '/dht/provider/c1')).toEqual(['/dht/provider/c1/a', '/dht/provider/c1/b'])
    expect(await keys(store, '/dht/provider')).toHaveLength(3)
    expect(await keys(store, '/peers/')).toEqual(['/peers/a'])
    expect(await keys(store, '')).toHaveLength(4)
    expect(await store.get(place('c2', 'a'))).toEqual(Uint8Array.of(3))
    await store.delete(place('c1', 'a'))
    await store.delete(place('c1', 'never-there'))
    expect([await store.has(place('c1', 'a')), await store.has(place('c1', 'b'))]).toEqual([false, true])
    expect(await keys(store, '/dht/provider/c1')).toEqual(['/dht/provider/c1/b'])
    await expect((async () => store.get(place('c1', 'a')))()).rejects.toMatchObject({ name: 'NotFoundError' })
  })

  it('bounds what one peer, what one capability and what all may fill, but not what is its own', () => {
    const store = createDhtStore('own')
    const range = (count: number) => Array.from({ length: count }, (_, at) => at)
    expect(
      fill(
        store,
        range(2000).map((at) => place(`flood${at}`, 'a')),
      ),
    ).toBe(512)
    expect(
      fill(
        store,
        range(2000).map((at) => place('crowd', `p${at}`)),
      ),
    ).toBe(512)
    expect(
      fill(
        store,
        range(60).flatMap((peer) => range(400).map((at) => place(`m${peer}-${at}`, `q${peer}`))),
      ),
    ).toBe(16_384 - 1024)
    expect(fill(store, [place('new', 'honest')])).toBe(0)
    expect(
      fill(
        store,
        range(100).map((at) => place(`mine${at}`, 'own')),
      ),
    ).toBe(100)
    // Who is there already is renewed all the same, and what expires makes room.
    expect(fill(store, [place('flood0', 'a')])).toBe(1)
    for (const at of range(200)) void store.delete(place(`flood${at}`, 'a'))
    expect(fill(store, [place('new', peerIdNamed('honest'))])).toBe(1)
  })
})
