import { signHop } from '@hermes-peer/protocol'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Actor, actor } from '../actors.ts'
import { craft, type Draft } from '../craft.ts'
import { honestKey, hostileKey, linkScene } from '../link-scene.ts'
import type { RawLink } from '../raw-link.ts'
import { partOf, varint } from '../raw-stream.ts'
import type { Victim } from '../victim.ts'

const SUBMIT: Draft = { message_type: 'submit', call_type: 'task', recipient_epoch: undefined }

describe('an envelope', () => {
  const { peers, fresh, drop, untouched } = linkScene()
  let victim: Victim
  beforeAll(() => {
    ;({ victim } = peers())
  })

  describe('that is meant for somebody else', () => {
    it.each<[string, string, (link: RawLink) => Draft]>([
      ['another agent', 'WRONG_RECIPIENT', () => ({ recipient: { agent_id: 'honest' } })],
      [
        'a capability by way of another agent',
        'WRONG_RECIPIENT',
        () => ({ recipient: { capability: 'echo', via: 'honest' } }),
      ],
      ['another network', 'WRONG_NETWORK', () => ({ network: 'other' })],
      ['another life of the victim', 'PEER_RESTARTED', ({ toEpoch }) => ({ recipient_epoch: toEpoch - 1 })],
      ['a later life of the victim', 'PEER_RESTARTED', ({ toEpoch }) => ({ recipient_epoch: toEpoch + 1 })],
    ])('%s: refused, and told why', async (_, code, draft) => {
      const link = await fresh()
      const before = victim.served.length
      const asked = link.request('echo', 'astray', draft(link))
      expect(await victim.until('envelope.refused')).toMatchObject({ code, from: 'hostile' })
      expect((await link.answerTo(asked)).payload).toMatchObject({ error_code: code })
      expect(victim.served).toHaveLength(before)
      const next = link.request('echo', 'right', { ordered: false })
      expect((await link.answerTo(next)).payload).toMatchObject({ output: 'right' })
      await drop(link)
      await untouched()
    })

    it('a topic: refused on a link', async () => {
      const link = await fresh()
      link.send({ message_type: 'event', recipient: { topic: 'news' }, payload: { data: 1 } })
      expect(await victim.until('envelope.refused')).toMatchObject({ code: 'WRONG_RECIPIENT' })
      await drop(link)
      await untouched()
    })
  })

  describe('that is handed on', () => {
    const third = actor('third')
    /** An envelope of the honest agent to the hostile one, which hands it on with these hops. */
    const handedOn = (link: RawLink, change: { hop?: object; signer?: Actor; copies?: number; draft?: Draft }) => {
      const from = { self: honestKey, to: 'hostile', toEpoch: link.epoch, epoch: Date.now(), sequence: 1 }
      return craft(from, {
        target_capability: 'echo',
        payload: { input: 'handed on' },
        ...change.draft,
        hops: (leaf) => {
          const hop = {
            forwarder: 'hostile',
            next: 'victim',
            index: 0,
            timestamp: Date.now(),
            budget_ms: 1000,
            previous: leaf,
            ...change.hop,
          }
          const { body, signature } = signHop(hop, (change.signer ?? hostileKey).key)
          const one = Buffer.concat([partOf(body), signature])
          return Buffer.concat([varint(change.copies ?? 1), ...Array.from({ length: change.copies ?? 1 }, () => one)])
        },
      })
    }

    it.each<[string, string, Parameters<typeof handedOn>[1]]>([
      ['to a third node', 'BAD_HOPS', { hop: { next: 'third' } }],
      ['by somebody it was not addressed to', 'BAD_HOPS', { hop: { forwarder: 'third' } }],
      ['with a hop of another envelope', 'BAD_HOPS', { hop: { previous: '0'.repeat(64) } }],
      ['with a hop in the wrong place', 'BAD_HOPS', { hop: { index: 1 } }],
      ['with a hop that another has signed', 'BAD_HOPS', { signer: third }],
      ['with the same hop twice', 'BAD_HOPS', { copies: 2 }],
      ['by more hops than it allows', 'TTL_EXPIRED', { draft: { max_hops: 0 } }],
      ['a submit to a third node', 'BAD_HOPS', { hop: { next: 'third' }, draft: SUBMIT }],
      ['a submit with a hop that another has signed', 'BAD_HOPS', { signer: third, draft: SUBMIT }],
      ['a submit by more hops than it allows', 'TTL_EXPIRED', { draft: { ...SUBMIT, max_hops: 0 } }],
    ])('%s: refused', async (_, code, change) => {
      const link = await fresh()
      const before = victim.served.length
      link.stream.send(handedOn(link, change).frame)
      expect(await victim.until('envelope.refused')).toMatchObject({ code, from: 'hostile' })
      expect(victim.served).toHaveLength(before)
      await drop(link)
      await untouched()
    })
  })
})
