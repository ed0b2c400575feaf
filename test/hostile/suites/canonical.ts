import { beforeAll, describe, expect, it } from 'vitest'
import { actor } from '../actors.ts'
import { eventually } from '../eventually.ts'
import { type Attack, falseProof, sayHello } from '../handshake-attacks.ts'
import { bytesOf, handHandshake, helloOf, proofOf } from '../raw-handshake.ts'
import { dialLink, type RawLink } from '../raw-link.ts'
import { partOf } from '../raw-stream.ts'
import { sharedScene } from '../scene.ts'
import { refused, verdictOf } from '../verdict.ts'
import type { Victim } from '../victim.ts'

const victimKey = actor('victim')
const hostileKey = actor('hostile')

/** Other spellings of a compact JSON object: each means the same to a parser, or two things to two of them. */
const SPELLINGS: readonly (readonly [string, (text: string) => string])[] = [
  ['white space', (text) => text.replace(',', ', ')],
  ['a line break at the end', (text) => `${text}\n`],
  ['a byte order mark', (text) => `\ufeff${text}`],
  [
    'an escape for a plain letter',
    (text) => text.replace('"network"', '"n\\u0065twork"').replace('"epoch"', '"\\u0065poch"'),
  ],
  ['a key twice, the same value', (text) => text.replace('{', `{${firstPair(text)},`)],
  [
    'a key twice, another value',
    (text) => text.replace(/\}$/, ',"network":"other","epoch":5}').replace('{', '{"network":"zzz","epoch":6,'),
  ],
  ['a number with a fraction', (text) => text.replace(/:(\d{6,})([,}])/, ':$1.0$2')],
  ['a number with an exponent', (text) => text.replace(/:(\d{6,})([,}])/, ':$1e0$2')],
  ['a number with a sign', (text) => text.replace(/:(\d{6,})([,}])/, ':+$1$2')],
  ['a number with a leading zero', (text) => text.replace(/:(\d{6,})([,}])/, ':0$1$2')],
  ['a number beyond 2^53', (text) => text.replace(/:(\d{6,})([,}])/, ':9007199254740993$2')],
  ['a number that is infinite', (text) => text.replace(/:(\d{6,})([,}])/, ':1e999$2')],
  ['minus zero', (text) => text.replace(/:(\d{6,})([,}])/, ':-0$2')],
  ['a letter that is not ASCII', (text) => text.replace(/\}$/, ',"x":"é"}')],
  ['a lone surrogate', (text) => text.replace(/\}$/, ',"x":"\\ud800"}')],
  ['a control character', (text) => text.replace(/\}$/, ',"x":"\u0001"}')],
  ['a key that reaches the prototype', (text) => text.replace(/\}$/, ',"__proto__":{"x":1}}')],
  ['a trailing comma', (text) => text.replace(/\}$/, ',}')],
  ['a comment', (text) => text.replace('{', '{/**/')],
  ['single quotes', (text) => text.replaceAll('"', "'")],
  ['a list around it', (text) => `[${text}]`],
  ['two objects', (text) => `${text}{}`],
  ['an index as a key, which parsers move to the front', (text) => text.replace(/\}$/, ',"1":1}')],
]

function firstPair(text: string): string {
  const [key, value] = Object.entries(JSON.parse(text) as Record<string, unknown>)[0] as [string, unknown]
  return `${JSON.stringify(key)}:${JSON.stringify(value)}`
}

const respelled = (bytes: Uint8Array, spell: (text: string) => string): Uint8Array => {
  const text = Buffer.from(bytes).toString()
  const other = spell(text)
  if (other === text) throw new Error(`${text.slice(0, 40)} has no such spelling`)
  return Buffer.from(other)
}

describe('a signed thing in another spelling', () => {
  const world = sharedScene()
  let victim: Victim
  let attack: Attack

  beforeAll(async () => {
    victim = await world.peer({ as: victimKey, allow: [hostileKey] })
    attack = { victim, raw: await world.raw(hostileKey), self: hostileKey, other: hostileKey }
  })

  it.each(SPELLINGS)('a hello with %s: refused', async (_, spell) => {
    victim.mark()
    const stream = await attack.raw.open(victim.address)
    stream.send(partOf(respelled(bytesOf(helloOf(hostileKey)), spell)))
    expect(await verdictOf(victim, stream)).toEqual(refused('MALFORMED'))
  })

  it.each(SPELLINGS)('a proof with %s, soundly signed: refused', async (_, spell) => {
    victim.mark()
    const stream = await attack.raw.open(victim.address)
    const hand = handHandshake(stream, hostileKey, { initiator: attack.raw.peerId, responder: victim.self.peerId })
    hand.send(helloOf(hostileKey))
    await hand.read()
    hand.sendSigned('proof', respelled(bytesOf(proofOf()), spell))
    expect(await verdictOf(victim, stream)).toEqual(refused('MALFORMED'))
  })

  it('a key in another base64: refused', async () => {
    const raw = Buffer.from(hostileKey.key.publicKey.raw)
    const url = raw.toString('base64url')
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    // The last letter of 32 bytes has two bits that mean nothing.
    const loose = url.slice(0, -1) + alphabet[alphabet.indexOf(url.at(-1) as string) + 1]
    for (const key of [`${url}=`, raw.toString('base64'), raw.toString('hex'), loose, ` ${url}`]) {
      if (key === url) continue
      expect(await sayHello(attack, helloOf(hostileKey, { key }))).toEqual(refused('MALFORMED'))
    }
    expect(
      await falseProof(attack, {
        sign: (message) => Buffer.concat([hostileKey.key.sign(message).subarray(0, 32), Buffer.alloc(32)]),
      }),
    ).toEqual(refused('HANDSHAKE_REFUSED'))
  })

  describe('of an envelope', () => {
    let link: RawLink
    beforeAll(async () => {
      victim.mark()
      link = await dialLink(attack.raw, hostileKey, victim.address)
    })

    const fresh = async () => {
      if (link.ended) link = await dialLink(attack.raw, hostileKey, victim.address)
      victim.mark()
      return link
    }

    it.each(SPELLINGS)('a header with %s, soundly signed: refused', async (_, spell) => {
      const on = await fresh()
      on.request('echo', 'respelled', { header: (bytes) => respelled(bytes, spell), sequence: 1_000_000 })
      const end = await eventually(() => victim.of('envelope.refused')[0] ?? victim.of('handler.started')[0], 'an end')
      expect(end).toMatchObject({ type: 'envelope.refused', code: 'MALFORMED' })
      await eventually(() => victim.of('link.down').length === 0 || link.ended, 'the link to be up or gone')
    })

    it('a header that spells out a default, or has its keys in another order, is taken as it was signed', async () => {
      const on = await fresh()
      const asked = on.request('echo', 'ordered', {
        header: (bytes) => {
          const header = JSON.parse(Buffer.from(bytes).toString()) as Record<string, unknown>
          return Buffer.from(
            JSON.stringify({ priority: 3, ...Object.fromEntries(Object.entries(header).reverse()), attempt: 1 }),
          )
        },
      })
      expect((await on.answerTo(asked)).payload).toMatchObject({ output: 'ordered' })
    })

    const payloads: readonly (readonly [string, string])[] = [
      ['a key twice', '{"input":1,"input":2}'],
      ['a key twice, once escaped', '{"input":1,"\\u0069nput":2}'],
      ['a key twice inside', '{"input":{"a":1,"a":1}}'],
      ['an integer beyond 2^53', '{"input":9007199254740993}'],
      ['an integer of 30 digits', '{"input":123456789012345678901234567890}'],
      ['an infinite number', '{"input":1e999}'],
      ['a number that is none', '{"input":NaN}'],
      ['a lone surrogate', '{"input":"\\ud800"}'],
      ['a key that reaches the prototype', '{"input":{"__proto__":{"admin":true}}}'],
      ['a key that reaches the constructor', '{"input":{"constructor":{"prototype":{}}}}'],
      ['a byte order mark', '\ufeff{"input":1}'],
      ['something behind it', '{"input":1}{}'],
      ['a field that nobody knows', '{"input":1,"admin":true}'],
      ['nothing', ''],
    ]

    it.each(payloads)('a payload with %s: refused, and the sender is told', async (_, text) => {
      const on = await fresh()
      const before = victim.served.length
      const asked = on.request('echo', null, { payload: Buffer.from(text), ordered: false })
      expect((await on.answerTo(asked)).payload).toMatchObject({ error_code: 'INVALID_PAYLOAD', retryable: false })
      expect(victim.served).toHaveLength(before)
    })

    it('a payload that is not UTF-8: refused', async () => {
      const on = await fresh()
      const asked = on.request('echo', null, {
        payload: Buffer.from([...Buffer.from('{"input":"'), 0xc3, 0x28, ...Buffer.from('"}')]),
        ordered: false,
      })
      expect((await on.answerTo(asked)).payload).toMatchObject({ error_code: 'INVALID_PAYLOAD' })
    })

    it('one number in many spellings is one value, and its bytes are what was signed', async () => {
      const on = await fresh()
      const before = victim.served.length
      for (const text of ['1.0', '1e0', '10E-1', '1']) {
        const asked = on.request('echo', null, { payload: Buffer.from(`{"input":${text}}`), ordered: false })
        expect((await on.answerTo(asked)).payload).toMatchObject({ output: 1 })
      }
      expect(victim.served.slice(before)).toEqual([1, 1, 1, 1])
      // And to the deduplication they are different work: the hash of the bytes counts.
      const first = on.request('echo', null, { payload: Buffer.from('{"input":1}'), ordered: false })
      await on.answerTo(first)
      const second = on.request('echo', null, {
        payload: Buffer.from('{"input":1.0}'),
        message_id: first.messageId,
        ordered: false,
      })
      expect((await on.answerTo(second)).payload).toMatchObject({ error_code: 'MESSAGE_CONFLICT' })
    })

    it('what the handler gets is frozen', async () => {
      const on = await fresh()
      const asked = on.request('echo', { list: [{ deep: 1 }] }, { ordered: false })
      await on.answerTo(asked)
      const input = victim.served.at(-1) as { list: { deep: number }[] }
      expect(Object.isFrozen(input)).toBe(true)
      expect(Object.isFrozen(input.list)).toBe(true)
      expect(Object.isFrozen(input.list[0])).toBe(true)
    })
  })
})
