import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { capability, createPeer, isHermesError } from 'hermes-peer'
import { beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { actor } from '../actors.ts'
import { eventually } from '../eventually.ts'
import { type Attack, sayHello } from '../handshake-attacks.ts'
import { helloOf } from '../raw-handshake.ts'
import { dialLink, type RawLink } from '../raw-link.ts'
import { sharedScene } from '../scene.ts'
import { refused } from '../verdict.ts'
import { echo, type Victim } from '../victim.ts'

const victimKey = actor('victim')
const hostileKey = actor('ops')

/** Names that look like `ops`, or would mean something to a file system, a log or a terminal. */
const NAMES: readonly (readonly [string, string])[] = [
  ['a Cyrillic o', '\u043eps'],
  ['decomposed', 'ops\u0301'],
  ['composed', 'op\u015b'],
  ['full width', '\uff4fps'],
  ['a zero-width joiner', 'op\u200ds'],
  ['a soft hyphen', 'op\u00ads'],
  ['bidirectional marks', '\u202espo\u202c'],
  ['a space behind', 'ops '],
  ['a space before', ' ops'],
  ['a no-break space', 'ops\u00a0'],
  ['upper case', 'OPS'],
  ['mixed case', 'Ops'],
  ['a reserved device name', 'CON'],
  ['a colon', 'a:b'],
  ['a step up', '../x'],
  ['a step up inside', 'a/../x'],
  ['an absolute path', '/etc/passwd'],
  ['a backslash', 'a\\b'],
  ['an empty segment', 'a//b'],
  ['a slash behind', 'ops/'],
  ['five segments', 'a/b/c/d/e'],
  ['a dot in front', '.ops'],
  ['a percent escape', 'op%73'],
  ['a line break', 'ops\n2026-01-01 ERROR'],
  ['an escape sequence', 'ops\u001b[31m'],
  ['a null', 'ops\0'],
  ['300 characters', 'o'.repeat(300)],
  ['a segment of 65', 'o'.repeat(65)],
  ['nothing', ''],
  ['a prototype key', '__proto__'],
  ['markup', '<img src=x>'],
]

const codeOf = (run: () => unknown): string => {
  try {
    run()
  } catch (error) {
    return isHermesError(error) ? error.code : String(error)
  }
  return 'accepted'
}

/** What a person reads: one line of plain letters, not longer than a screen. */
const readable = (text: string) => /^[\x20-\x7e\u2019\u201c\u201d\u2013\u2026\u2192]*$/.test(text) && text.length < 400

describe('F-40 look-alike and differently encoded names', () => {
  const world = sharedScene()
  let victim: Victim
  let attack: Attack

  beforeAll(async () => {
    victim = await world.peer({ as: victimKey, allow: [hostileKey] })
    attack = { victim, raw: await world.raw(hostileKey), self: hostileKey, other: hostileKey }
  })

  it.each(NAMES)('%s: refused as an agent id in the options', (_, name) => {
    expect(codeOf(() => createPeer({ agentId: name }))).toBe('INVALID_NAME')
    expect(codeOf(() => createPeer({ agentId: 'ops', network: name }))).toBe('INVALID_NAME')
    try {
      createPeer({ agentId: name })
    } catch (error) {
      expect(readable((error as Error).message)).toBe(true)
    }
  })

  it.each(NAMES)(
    '%s: refused as the name of a capability, a topic, an event or an agent that is meant',
    async (_, name) => {
      const contract = () => capability(name, { description: 'x', input: z.unknown(), output: z.unknown() })
      expect(['INVALID_NAME', 'INVALID_CONTRACT']).toContain(codeOf(contract))
      const { peer } = victim
      await expect(peer.callDynamic(name, null)).rejects.toMatchObject({ code: 'INVALID_NAME' })
      await expect(peer.call(echo, null, { agent: name })).rejects.toMatchObject({ code: 'INVALID_NAME' })
      await expect(peer.emit({ topic: name }, 1)).rejects.toMatchObject({ code: 'INVALID_NAME' })
      await expect(peer.emit({ agent: name, event: 'x' }, 1)).rejects.toMatchObject({ code: 'INVALID_NAME' })
      await expect(peer.emit({ agent: 'ops', event: name }, 1)).rejects.toMatchObject({ code: 'INVALID_NAME' })
      await expect(peer.manifest(name)).rejects.toMatchObject({ code: 'INVALID_NAME' })
      await expect(peer.find({ agent: name })).rejects.toMatchObject({ code: 'INVALID_NAME' })
      await expect(peer.find({ capability: name })).rejects.toMatchObject({ code: 'INVALID_NAME' })
      expect(codeOf(() => peer.onTopic(name, () => undefined))).toBe('INVALID_NAME')
      expect(codeOf(() => peer.onEvent(name, () => undefined))).toBe('INVALID_NAME')
    },
  )

  it.each(NAMES)('%s: refused in a trust file, which names the entry', async (_, name) => {
    const file = join(world.place.path, 'trust.json')
    writeFileSync(file, JSON.stringify({ agents: [hostileKey.listed, { ...hostileKey.listed, agent_id: name }] }))
    const peer = createPeer({
      agentId: 'lister',
      preset: 'none',
      identity: world.place.keyFile(actor('lister')),
      trust: { allow: file },
    })
    await expect(peer.start()).rejects.toMatchObject({
      code: 'INVALID_TRUST_FILE',
      message: expect.stringContaining('agents[1].agent_id'),
    })
  })

  it.each(NAMES)('%s: refused in a hello', async (_, name) => {
    expect(await sayHello(attack, helloOf(hostileKey, { agent_id: name }))).toEqual(refused('MALFORMED'))
    expect(await sayHello(attack, helloOf(hostileKey, { network: name }))).toEqual(refused('MALFORMED'))
    for (const { reason } of victim.of('handshake.refused')) expect(readable(reason)).toBe(true)
    expect(victim.links).toBe(0)
  })

  describe('in a header', () => {
    let link: RawLink
    beforeAll(async () => {
      link = await dialLink(attack.raw, hostileKey, victim.address)
    })

    /** Puts any text into a header that is signed all the same. */
    const renamed = (field: string, name: string) => (bytes: Uint8Array) => {
      const header = JSON.parse(Buffer.from(bytes).toString()) as Record<string, unknown>
      if (field === 'sender') header.sender = { ...(header.sender as object), agent_id: name }
      else if (field === 'recipient') header.recipient = { agent_id: name }
      else if (field === 'via') header.recipient = { capability: 'echo', via: name }
      else if (field === 'path') header.path = [`${name}#echo`]
      else header[field] = name
      return Buffer.from(JSON.stringify(header))
    }

    it.each(['network', 'sender', 'recipient', 'via', 'target_capability', 'path'])(
      '%s: each of them is refused as malformed',
      async (field) => {
        for (const [what, name] of NAMES) {
          // Too many broken ones would cut the link: that is shown elsewhere.
          if (link.ended) link = await dialLink(attack.raw, hostileKey, victim.address)
          victim.mark()
          link.request('echo', what, { header: renamed(field, name), sequence: 1_000_000 })
          const end = await eventually(
            () => victim.of('envelope.refused')[0] ?? victim.of('handler.started')[0],
            'an end',
          )
          expect([what, end]).toMatchObject([what, { type: 'envelope.refused', code: 'MALFORMED' }])
          expect(readable((end as { reason: string }).reason)).toBe(true)
          await eventually(() => victim.of('link.down').length === 0 || link.ended, 'the link to be up or gone')
        }
        expect(victim.served).toEqual([])
      },
    )
  })

  it('ids that are allowed lie in files under their own, escaped names', async () => {
    const folder = join(world.place.path, 'private')
    for (const agentId of ['billing/ledger', 'a.b-c_d', 'con']) {
      const peer = await createPeer({ agentId, folder }).start()
      await peer.stop()
    }
    const below = (path: string): string[] =>
      readdirSync(path, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ name }) => name)
    const files = below(join(folder, 'keys'))
    expect(files.filter((name) => name.endsWith('.pem')).sort()).toEqual([
      'a.b-c_d.pem',
      'billing%2Fledger.pem',
      'con.pem',
    ])
    expect(readdirSync(join(folder, 'keys')).every((name) => !name.includes('/'))).toBe(true)
  })

  it('ids are compared byte by byte: no two spellings are one', async () => {
    expect(await sayHello(attack, helloOf(hostileKey, { agent_id: 'ops.' }))).toEqual(refused('NOT_ALLOWED'))
    expect(await sayHello(attack, helloOf(hostileKey, { agent_id: 'ops-' }))).toEqual(refused('NOT_ALLOWED'))
    expect(await sayHello(attack, helloOf(hostileKey, { agent_id: 'ops/ops' }))).toEqual(refused('NOT_ALLOWED'))
  })
})
