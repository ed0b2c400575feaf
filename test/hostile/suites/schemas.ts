import { createServer, type Socket } from 'node:net'
import type { CapabilityEntry } from '@hermes-peer/protocol'
import { describe, expect, it, onTestFinished } from 'vitest'
import { actor } from '../actors.ts'
import { eventually } from '../eventually.ts'
import { capabilityEntry, dialLink } from '../raw-link.ts'
import { honest, scene } from '../scene.ts'
import { echo } from '../victim.ts'

const victimKey = actor('victim')
const honestKey = actor('honest')
const hostileKey = actor('hostile')

/** A listener that counts who comes. */
async function watchedListener(): Promise<{ url: string; came: () => number }> {
  let came = 0
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    came++
    sockets.add(socket)
    socket.on('error', () => undefined).end('HTTP/1.1 200 OK\r\n\r\n{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return { url: `http://127.0.0.1:${(server.address() as { port: number }).port}`, came: () => came }
}

const BAIT = `${'a'.repeat(40_000)}!`
const nested = (keyword: string, count: number) => {
  let schema: unknown = { type: 'string' }
  for (let i = 0; i < count; i++) schema = { [keyword]: [schema] }
  return schema
}
/** Each branch is the one before, twice: work doubles with each step. */
const doubling = Object.fromEntries(
  Array.from({ length: 40 }, (_, index) => [
    `s${index}`,
    index === 0
      ? { type: 'integer' }
      : { anyOf: [{ $ref: `#/$defs/s${index - 1}` }, { $ref: `#/$defs/s${index - 1}` }] },
  ]),
)

/** What a stranger may write as the schema of its input, and what is asked for. */
const bombs = (url: string): readonly (readonly [string, unknown, unknown])[] => [
  ['a pattern that backtracks, with its bait', { type: 'string', pattern: '^(a+)+$' }, BAIT],
  ['a pattern of nested repeats', { type: 'string', pattern: '^((a{1,99}){1,99}){1,99}$' }, BAIT],
  [
    'many patterns that backtrack',
    { allOf: Array.from({ length: 80 }, (_, index) => ({ pattern: `^(a|a)*${index}$` })) },
    BAIT,
  ],
  [
    'a pattern for the names of 5,000 properties',
    { patternProperties: { '(x+x+)+y': {} } },
    Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`x${index}`, 0])),
  ],
  ['allOf inside one another, as deep as a document may be', nested('allOf', 12), 'x'],
  ['1,200 anyOf side by side', { anyOf: Array.from({ length: 1200 }, () => ({ not: {} })) }, 'x'],
  ['branches that double', { $defs: doubling, $ref: '#/$defs/s39' }, 'x'],
  ['a $ref to a listener', { $ref: `${url}/schema.json` }, 'x'],
  ['an $id at a listener and a $ref from there', { $id: `${url}/`, $ref: 'schema.json' }, 'x'],
  ['a $schema at a listener', { $schema: `${url}/schema` }, 'x'],
  ['a $dynamicRef to a listener', { $dynamicRef: `${url}/schema.json` }, 'x'],
  ['a $ref to a file', { $ref: 'file:///etc/passwd' }, 'x'],
  ['a $ref to itself', { $ref: '#' }, 'x'],
  [
    'a $ref to itself by way of another',
    { $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } }, $ref: '#/$defs/a' },
    'x',
  ],
  ['a $ref to its own parent', { properties: { next: { $ref: '#/properties/next' } } }, { next: 1 }],
  [
    'uniqueItems of 9,000 big items',
    { uniqueItems: true },
    Array.from({ length: 9000 }, (_, index) => [index, 'x'.repeat(50)]),
  ],
  [
    'an enum of 1,000 texts for 9,000 items',
    { items: { enum: Array.from({ length: 1000 }, (_, index) => `v${index}`) } },
    Array.from({ length: 9000 }, () => 'v-none'),
  ],
  [
    'names that every object has',
    { properties: { valueOf: { type: 'string' }, toString: {} }, required: ['toString', 'hasOwnProperty'] },
    { a: 1 },
  ],
  ['nothing that is a schema', 'a text', 'x'],
]

describe('F-08 schemas from strangers run as code', () => {
  it('routing answers in under a second each, connects to nobody, and other calls keep flowing', async () => {
    const world = scene()
    const { url, came } = await watchedListener()
    const victim = await world.peer({ as: victimKey, allow: [honestKey, hostileKey] })
    const good = await honest(world, honestKey, victim)
    const raw = await world.raw(hostileKey)
    for (const [what, input_schema, input] of bombs(url)) {
      victim.mark()
      const entry: Partial<CapabilityEntry> = { input_schema, output_schema: input_schema }
      const link = await dialLink(raw, hostileKey, victim.address, { capabilities: [capabilityEntry('trap', entry)] })
      const known = await victim.peer.manifest('hostile').catch((error: unknown) => error)
      const since = { at: performance.now(), cpu: process.cpuUsage() }
      let end: string | undefined
      const ends = (code: string) => {
        end = code
      }
      void victim.peer.callDynamic('trap', input, { agent: 'hostile', timeoutMs: 20_000 }).then(
        () => ends('OK'),
        (error: { code: string }) => ends(error.code),
      )
      const flowing = Promise.all([1, 2, 3].map((value) => good.peer.call(echo, value)))
      // What the schema accepts goes out and is answered; all else ends here.
      await eventually(() => {
        const asked = link.heard.find(({ header }) => header.target_capability === 'trap')
        if (asked) link.answer(asked, input)
        return end
      }, `the end of a call against ${what}`)
      // What it costs is told by the processor: the wall clock of a busy machine also counts what others do.
      const { user, system } = process.cpuUsage(since.cpu)
      const seconds = { busy: (user + system) / 1e6, passed: (performance.now() - since.at) / 1000 }
      expect([what, seconds.busy < 1 || seconds, seconds.passed < 5 || seconds]).toEqual([what, true, true])
      expect(['OK', 'NO_CANDIDATE']).toContain(end)
      expect(await flowing).toEqual([1, 2, 3])
      expect([what, known]).toMatchObject([what, { capabilities: [{ name: 'trap' }] }])
      link.reset()
      await victim.until('link.down', ({ agentId }) => agentId === 'hostile')
    }
    expect(came()).toBe(0)
    expect(world.escaped).toEqual([])
  })

  it('a text that no pattern of the schema fits is refused for that, not sent', async () => {
    const world = scene()
    const victim = await world.peer({ as: victimKey, allow: [hostileKey] })
    const link = await dialLink(await world.raw(hostileKey), hostileKey, victim.address, {
      capabilities: [capabilityEntry('trap', { input_schema: { type: 'string', pattern: '^(a+)+$' } })],
    })
    await victim.until('directory.changed')
    await expect(victim.peer.callDynamic('trap', BAIT)).rejects.toMatchObject({
      code: 'NO_CANDIDATE',
      message: expect.stringContaining('hostile'),
    })
    const call = victim.peer.callDynamic('trap', 'a'.repeat(1000))
    link.answer(await link.next(({ header }) => header.target_capability === 'trap'), 'fits')
    expect(await call).toBe('fits')
  })

  it('a self-reference is named as the reason', async () => {
    const world = scene()
    const victim = await world.peer({ as: victimKey, allow: [hostileKey] })
    await dialLink(await world.raw(hostileKey), hostileKey, victim.address, {
      capabilities: [capabilityEntry('trap', { input_schema: { $ref: '#' } })],
    })
    await victim.until('directory.changed')
    await expect(victim.peer.callDynamic('trap', 1)).rejects.toMatchObject({
      code: 'NO_CANDIDATE',
      message: expect.stringContaining('schema'),
    })
  })

  it('a manifest that is larger than 64 KiB is refused as a whole', async () => {
    const world = scene()
    const victim = await world.peer({ as: victimKey, allow: [hostileKey, honestKey] })
    const good = await honest(world, honestKey, victim)
    await dialLink(await world.raw(hostileKey), hostileKey, victim.address, {
      capabilities: [capabilityEntry('trap', { input_schema: { enum: ['x'.repeat(70_000)] } })],
    })
    await expect(victim.peer.manifest('hostile')).rejects.toMatchObject({ code: 'LIMIT_EXCEEDED' })
    expect(await good.peer.call(echo, 1)).toBe(1)
    await eventually(() => victim.links === 2, 'both links')
  })
})
