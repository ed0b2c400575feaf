import {
  chunkChain,
  decodeChunk,
  decodeFrame,
  decodeHeader,
  decodePayload,
  type HermesError,
  Reader,
  STREAM_PROTOCOL,
} from '@hermes-peer/protocol'
import { capability } from 'hermes-peer'
import { expect } from 'vitest'
import * as z from 'zod'
import { actor } from './actors.ts'
import type { Crafted, Draft } from './craft.ts'
import { craft, frameOf } from './craft.ts'
import { capabilityEntry, dialLink, type RawLink } from './raw-link.ts'
import type { RawPeer } from './raw-peer.ts'
import { partOf, type RawStream } from './raw-stream.ts'
import type { Scene } from './scene.ts'
import type { Victim } from './victim.ts'

export const victimKey = actor('victim')
export const hostileKey = actor('hostile')
export const otherKey = actor('other')

export const tokens = capability('tokens', {
  description: 'Yields tokens.',
  input: z.number(),
  output: z.string(),
  yields: z.string(),
  effects: 'none',
})

/** What the handler of `tokens` has been through. */
export interface Runs {
  started: number
  aborted: (string | undefined)[]
}

export async function attacked(world: Scene, options: Partial<Parameters<Scene['peer']>[0]> = {}) {
  const runs: Runs = { started: 0, aborted: [] }
  const victim = await world.peer({
    as: victimKey,
    allow: [hostileKey, otherKey],
    prepare: (peer) =>
      peer.provide(tokens, async function* (count, { signal }) {
        runs.started++
        signal.addEventListener('abort', () => runs.aborted.push((signal.reason as HermesError).code))
        for (let n = 0; n < count; n++) {
          yield 'x'.repeat(100)
          if (n % 50 === 49) await new Promise((resolve) => setImmediate(resolve))
        }
        return 'done'
      }),
    ...options,
  })
  const raw = await world.raw(hostileKey)
  const link = await dialLink(raw, hostileKey, victim.address, { capabilities: [capabilityEntry('work')] })
  victim.mark()
  return { victim, raw, link, runs }
}

export const open = (raw: RawPeer, victim: Victim) => raw.open(victim.address, STREAM_PROTOCOL)

export const streaming = (link: RawLink, count: number, more: Draft = {}): Crafted =>
  craft(link, {
    message_type: 'request',
    call_type: 'stream',
    target_capability: 'tokens',
    payload: { input: count },
    ...more,
  })

/** The opening of a request whose payload travels apart; the payload is told, not sent. */
export function apart(link: RawLink, payload: Uint8Array, more: Draft = {}): Crafted {
  const crafted = craft(link, { message_type: 'request', target_capability: 'echo', payload, ...more })
  return { ...crafted, frame: frameOf(crafted.header, new Uint8Array(0), crafted.signature) }
}

export interface Read {
  indices: number[]
  end: Record<string, unknown> | undefined
  abort: string | undefined
  /** How the stream ended without a word. */
  cut: boolean
}

/** Reads a stream to its end, and proves it where it ends as it should. */
export async function readStream(stream: RawStream, leaf: string): Promise<Read> {
  const chain = chunkChain(leaf)
  const read: Read = { indices: [], end: undefined, abort: undefined, cut: false }
  for (;;) {
    let body: Uint8Array
    try {
      body = await stream.part()
    } catch {
      return { ...read, cut: true }
    }
    const chunk = decodeChunk(body)
    if (chunk.kind === 'data') {
      chain.add(chunk.index, partOf(body))
      read.indices.push(chunk.index)
    } else if (chunk.kind === 'abort') return { ...read, abort: chunk.code }
    else if (chunk.kind === 'end') {
      const reader = new Reader(chunk.frame)
      const frame = decodeFrame(reader.part(chunk.frame.length, 'the frame'))
      if (frame.tag !== 0) throw new Error('an end of another tag')
      const end = decodePayload(decodeHeader(frame.header).content_type, frame.payload) as Record<string, unknown>
      expect(end).toMatchObject({ count: chain.count, running_hash: chain.hash })
      return { ...read, end }
    }
  }
}

/** After all of it the victim serves as before. */
export async function asBefore(victim: Victim, raw: RawPeer, link: RawLink): Promise<void> {
  const crafted = streaming(link, 3)
  const stream = await open(raw, victim)
  stream.send(crafted.frame)
  expect(await readStream(stream, crafted.leaf)).toMatchObject({
    indices: [1, 2, 3],
    end: { status: 'completed', output: 'done' },
  })
  expect((await link.answerTo(link.request('echo', 'still there'))).payload).toMatchObject({ output: 'still there' })
  expect(victim.of('link.down')).toEqual([])
}
