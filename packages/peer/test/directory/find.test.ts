import { HermesError } from '@hermes-peer/protocol'
import { describe, expect, it } from 'vitest'
import { directing, manifestOf, only, peerIdNamed, report } from './support.ts'

const names = (entries: readonly { agentId: string }[]) => entries.map(({ agentId }) => agentId).sort()

describe('finding', () => {
  it('gives who is known to offer it, with the manifest that the link tells', async () => {
    const { find, reachable, manifests, directory, log } = directing()
    reachable.set('a', '/ip4/127.0.0.1/tcp/4001/p2p/a')
    manifests.set('a', manifestOf('a', ['work']))
    directory.heard(report('a'))
    directory.heard(report('b', { capabilities: ['other'] }))
    const [a, ...others] = await find({ capability: 'work' })
    expect(others).toEqual([])
    expect(a?.manifest?.capabilities[0]?.name).toBe('work')
    expect(log.asked).toEqual(['a'])
  })

  it('asks for a manifest once, however many wait for it', async () => {
    const { find, reachable, manifests, directory, log, clock } = directing()
    reachable.set('a', '/ip4/127.0.0.1/tcp/4001/p2p/a')
    manifests.set('a', manifestOf('a', ['work']))
    directory.heard(report('a'))
    const options = { signal: new AbortController().signal }
    await clock.timeline.runUntil(Promise.all([1, 2, 3].map(() => directory.find({ capability: 'work' }, options))))
    await find({ capability: 'work' })
    expect(log.asked).toEqual(['a'])
  })

  it('waits for nobody who cannot be dialled while another one can do the work', async () => {
    const { find, reachable, manifests, directory, clock, hanging } = directing()
    reachable.set('a', '/ip4/127.0.0.1/tcp/4001/p2p/a')
    manifests.set('a', manifestOf('a', ['work']))
    directory.heard(report('a'))
    expect(names(await find({ capability: 'work' }))).toEqual(['a'])
    hanging.add('b')
    directory.heard(report('b'))
    const before = clock.monotonic()
    expect(names(await find({ capability: 'work' }))).toEqual(['a', 'b'])
    expect(clock.monotonic() - before).toBe(0)
    expect(names(await find({ capability: 'work' }, { complete: true }))).toEqual(['a', 'b'])
    expect(clock.monotonic() - before).toBeGreaterThanOrEqual(2000)
    expect(directory.get('b')?.status).toBe('offline')
  })

  it('goes on without a manifest that cannot be had', async () => {
    const { find, directory } = directing()
    directory.heard(report('a'))
    expect(names(await find({ capability: 'work' }))).toEqual(['a'])
  })

  it('asks the DHT when nobody usable is known, and links to whom it names', async () => {
    const { find, reachable, manifests, setProviders, log } = directing()
    reachable.set('a', '/ip4/127.0.0.1/tcp/7')
    manifests.set('a', manifestOf('a', ['work']))
    setProviders({ peerId: peerIdNamed('a'), addresses: ['/ip4/127.0.0.1/tcp/7'] })
    expect(names(await find({ capability: 'work' }))).toEqual(['a'])
    expect(log.lookups).toBe(1)
  })

  it('never caches an empty answer', async () => {
    const { find, log } = directing()
    expect(await find({ capability: 'work' })).toEqual([])
    expect(await find({ capability: 'work' })).toEqual([])
    expect(log.lookups).toBe(2)
  })

  it('tells that nobody could be asked from that nobody offers it, and what is known of who did', async () => {
    const { find, cutOff, setProviders, directory, reachable, manifests, down } = directing()
    cutOff('it is down')
    await expect(find({ capability: 'work' })).rejects.toMatchObject({
      code: 'DIRECTORY_UNREACHABLE',
      retryable: true,
      message: 'who offers work cannot be looked up: test: it is down',
      details: { sources: [{ source: 'test', reason: 'it is down' }] },
    })
    cutOff()
    expect(await find({ capability: 'work' })).toEqual([])
    reachable.set('a', '/ip4/127.0.0.1/tcp/7')
    manifests.set('a', manifestOf('a', ['work']))
    setProviders({ peerId: peerIdNamed('a'), addresses: ['/ip4/127.0.0.1/tcp/7'] })
    expect(names(await find({ capability: 'work' }))).toEqual(['a'])
    // It is gone, but what was said of it is not too old: it is dialled again.
    cutOff('it is down')
    down('a')
    expect(names(await find({ capability: 'work' }))).toEqual(['a'])
    expect(directory.get('a')?.status).toBe('online')
    expect(directory.lookup('work').staleMs).toBeGreaterThanOrEqual(0)
    down('a')
    reachable.clear()
    expect(names(await find({ capability: 'work' }))).toEqual(['a'])
    expect(directory.get('a')?.status).toBe('offline')
  })

  it('asks again after 30 s although somebody is known, but does not wait for it', async () => {
    const { find, directory, log, advance, up, manifests } = directing()
    manifests.set('a', manifestOf('a', ['work']))
    up('a')
    directory.heard(report('a', { counter: 0 }))
    await find({ capability: 'work' })
    await find({ capability: 'work' })
    expect(log.lookups).toBe(1)
    await advance(30_000)
    directory.heard(report('a', { counter: 1 }))
    expect(names(await find({ capability: 'work' }))).toEqual(['a'])
    expect(log.lookups).toBe(2)
  })

  it('stops at the signal', async () => {
    const { directory, clock } = directing()
    const stop = new AbortController()
    const finding = directory.find({ capability: 'work' }, { signal: stop.signal })
    stop.abort(new HermesError('CANCELLED'))
    expect(await clock.timeline.runUntil(finding)).toEqual([])
  })

  it('names an agent by its id alone', async () => {
    const { find, directory } = directing()
    directory.heard(report('a'))
    expect(names(await find({ agent: 'a' }))).toEqual(['a'])
    expect(await find({ agent: 'ghost' })).toEqual([])
  })
})

describe('reaching an agent', () => {
  const old = '/ip4/127.0.0.1/tcp/4001/p2p/a'

  it('F-27 looks the address up again once, within the call, when the dial fails', async () => {
    const { directory, reachable, setProviders, log, clock } = directing()
    directory.heard(report('a'))
    reachable.set('a', '/ip4/127.0.0.1/tcp/4002')
    setProviders({ peerId: peerIdNamed('a'), addresses: ['/ip4/127.0.0.1/tcp/4002'] })
    const link = await clock.timeline.runUntil(directory.reach('a'))
    expect(link.remote.agentId).toBe('a')
    expect(log.dials.map(({ addresses }) => addresses)).toEqual([[old], ['/ip4/127.0.0.1/tcp/4002']])
    expect(directory.get('a')?.addresses).toEqual(['/ip4/127.0.0.1/tcp/4002'])
  })

  it('F-27 does not dial the same dead address twice', async () => {
    const { directory, setProviders, log, clock } = directing()
    directory.heard(report('a'))
    setProviders({ peerId: peerIdNamed('a'), addresses: [old] })
    await expect(clock.timeline.runUntil(directory.reach('a'))).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' })
    expect(log.dials).toHaveLength(1)
    expect(directory.get('a')?.status).toBe('offline')
  })

  it('takes the link that is there', async () => {
    const { directory, up, log, clock } = directing()
    const link = up('a')
    expect(await clock.timeline.runUntil(directory.reach('a'))).toBe(link)
    expect(log.dials).toEqual([])
  })

  it('of an agent that nobody knows says so', async () => {
    const { directory, clock } = directing()
    const reaching = clock.timeline.runUntil(directory.reach('ghost'))
    await expect(reaching).rejects.toMatchObject({
      code: 'PEER_UNREACHABLE',
      message: expect.stringContaining('ghost'),
    })
  })
})

describe('manifests', () => {
  it('are asked again when the presence tells of a newer one', async () => {
    const { directory, up, manifests, advance } = directing()
    manifests.set('a', manifestOf('a', ['work'], 1))
    up('a')
    await advance(1)
    manifests.set('a', manifestOf('a', ['work', 'more'], 2))
    directory.heard(report('a', { manifest_serial: 2, capabilities: ['work', 'more'] }))
    await advance(1)
    expect(directory.get('a')?.manifest?.serial).toBe(2)
  })

  it('are asked again when the handshake shows another digest', async () => {
    const { directory, up, down, manifests, advance, log } = directing()
    manifests.set('a', manifestOf('a', ['work'], 1))
    up('a', { digest: 'one' })
    await advance(1)
    down('a')
    up('a', { digest: 'one' })
    await advance(1)
    expect(log.asked).toHaveLength(1)
    manifests.set('a', manifestOf('a', ['other'], 2))
    down('a')
    up('a', { digest: 'two', epoch: 101 })
    await advance(1)
    expect(log.asked).toHaveLength(2)
    expect(directory.get('a')?.manifest?.capabilities.map(({ name }) => name)).toEqual(['other'])
  })

  it('are asked for again when a newer one was spoken of while the older was on its way', async () => {
    const { manifests, directory, up, whileAsking, log, advance } = directing()
    manifests.set('a', manifestOf('a', ['work'], 1))
    whileAsking(async () => {
      whileAsking(async () => undefined)
      manifests.set('a', manifestOf('a', ['work', 'more'], 2))
      directory.heard(report('a', { manifest_serial: 2, capabilities: ['work', 'more'] }))
    })
    up('a')
    await advance(1)
    expect(log.asked).toHaveLength(2)
    expect(directory.get('a')?.manifest?.serial).toBe(2)
  })

  it('never fall back to a lower serial', async () => {
    const { directory, up, down, manifests, advance } = directing()
    manifests.set('a', manifestOf('a', ['new'], 5))
    up('a', { digest: 'new' })
    await advance(1)
    manifests.set('a', manifestOf('a', ['old'], 4))
    down('a')
    up('a', { digest: 'old' })
    await advance(1)
    expect(directory.get('a')?.manifest?.serial ?? 5).toBe(5)
  })

  it('of another agent or another key are refused', async () => {
    const { directory, up, manifests, clock } = directing()
    manifests.set('a', manifestOf('b', ['work']))
    up('a')
    await expect(clock.timeline.runUntil(directory.manifest('a'))).rejects.toMatchObject({
      code: expect.stringMatching(/IDENTITY_MISMATCH|BAD_SIGNATURE/),
    })
    expect(directory.get('a')?.manifest).toBeUndefined()
  })

  it('that have expired are refused, and count no more once they do; a clock may be off by 10 minutes', async () => {
    const { directory, up, manifests, clock, advance } = directing()
    const minute = 60_000
    const until = (expires_at: number, serial: number) => manifestOf('a', ['work'], serial, { expires_at })
    manifests.set('a', until(clock.now() - 11 * minute, 1))
    up('a')
    await expect(clock.timeline.runUntil(directory.manifest('a'))).rejects.toMatchObject({ code: 'EXPIRED' })
    manifests.set('a', until(clock.now() + minute, 2))
    expect((await clock.timeline.runUntil(directory.manifest('a'))).serial).toBe(2)
    await advance(10 * minute)
    expect(directory.get('a')?.manifest?.serial).toBe(2)
    await advance(2 * minute)
    expect(directory.get('a')?.manifest).toBeUndefined()
  })

  it('are frozen: nobody changes what routing sees', async () => {
    const { directory, up, manifests, clock } = directing()
    manifests.set('a', manifestOf('a', ['work']))
    up('a')
    const manifest = await clock.timeline.runUntil(directory.manifest('a'))
    const entry = manifest.capabilities[0] as { labels: Record<string, string> }
    expect(Object.isFrozen(manifest)).toBe(true)
    expect(Object.isFrozen(entry)).toBe(true)
    expect(Object.isFrozen(entry.labels), 'down to its leaves').toBe(true)
  })
})

describe('watching', () => {
  it('tells first who is there already', () => {
    const { directory, watch } = directing()
    directory.heard(report('a'))
    directory.heard(report('b', { capabilities: ['other'] }))
    expect(watch({ capability: 'work' }).changes).toEqual(['a joined'])
    expect(watch({ agent: 'b' }).changes).toEqual(['b joined'])
  })

  it('an agent by its id tells of a manifest that says something else, and has it at hand by then', async () => {
    const { directory, up, down, reachable, watch, manifests, advance, log } = directing()
    reachable.set('a', report('a').presence.addresses[0] as string)
    manifests.set('a', manifestOf('a', ['work'], 1))
    up('a')
    await advance(1)
    const { changes } = watch({ agent: 'a' })
    const renewed = async (serial: number, description: string) => {
      manifests.set('a', manifestOf('a', ['work'], serial, { description }))
      directory.heard(report('a', { counter: serial, manifest_serial: serial }))
      await advance(1)
      return directory.get('a')?.manifest?.description
    }
    expect(await renewed(2, '日志')).toBe('日志')
    expect(changes).toEqual(['a joined', 'a changed'])
    // Signed anew, but it says the same.
    expect(await renewed(3, '日志')).toBe('日志')
    expect(changes).toHaveLength(2)
    // Also without a link: it is dialled for it.
    down('a')
    expect(await renewed(4, 'logs and tickets')).toBe('logs and tickets')
    expect(changes.at(-1)).toBe('a changed')
    expect(log.asked).toEqual(['a', 'a', 'a', 'a'])
  })

  it('a capability alone does not make anybody ask for a manifest', async () => {
    const { directory, watch, advance, log } = directing()
    directory.heard(report('a'))
    watch({ capability: 'work' })
    directory.heard(report('a', { counter: 2, manifest_serial: 2 }))
    await advance(1)
    expect(log.asked).toEqual([])
  })

  it('a capability tells who joins also when the link came before anything was known of it', async () => {
    const { up, watch, manifests, advance } = directing()
    const { changes } = watch({ capability: 'work' })
    manifests.set('a', manifestOf('a', ['work']))
    up('a')
    await advance(1)
    expect(changes).toEqual(['a joined'])
  })

  it('a capability tells who joins by providing it later, and who leaves by providing it no more', () => {
    const { directory, watch } = directing()
    const { changes } = watch({ capability: 'extra' })
    directory.heard(report('a', { counter: 0, capabilities: ['work'] }))
    expect(changes).toEqual([])
    directory.heard(report('a', { counter: 1, capabilities: ['work', 'extra'] }))
    expect(changes).toEqual(['a joined'])
    directory.heard(report('a', { epoch: 101, counter: 0, capabilities: ['work'] }))
    expect(changes).toEqual(['a joined', 'a left'])
  })

  it('a capability tells of a change in what an agent offers besides', () => {
    const { directory, watch } = directing()
    const { changes } = watch({ capability: 'work' })
    directory.heard(report('a', { counter: 0, capabilities: ['work'] }))
    directory.heard(report('a', { counter: 1, capabilities: ['work', 'extra'] }))
    expect(changes).toEqual(['a joined', 'a changed'])
  })

  it('tells nothing of others, nothing of reports without news, and nothing after it is stopped', () => {
    const { directory, watch } = directing()
    const { changes, stop } = watch({ agent: 'a' })
    directory.heard(report('b'))
    directory.heard(report('a', { counter: 0 }))
    directory.heard(report('a', { counter: 1 }))
    stop()
    directory.heard(report('a', { counter: 2, state: 'leaving' }))
    expect(changes).toEqual(['a joined'])
  })

  it('tells nothing of agents that trust does not admit', () => {
    const { directory, watch } = directing({ trust: only('a') })
    const { changes } = watch({ capability: 'work' })
    directory.heard(report('b'))
    expect(changes).toEqual([])
  })

  it('a watcher that throws does not keep the others from hearing', () => {
    const { directory, watch, telemetry } = directing()
    const failures: string[] = []
    telemetry.events.on('listener.failed', ({ where }) => failures.push(where))
    directory.watch({ agent: 'a' }, () => {
      throw new Error('of the user')
    })
    const { changes } = watch({ agent: 'a' })
    directory.heard(report('a'))
    expect(changes).toEqual(['a joined'])
    expect(failures).toEqual(['watch'])
  })
})
