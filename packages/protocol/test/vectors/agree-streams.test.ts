import { describe, expect, it } from 'vitest'
import {
  type Chunk,
  checkOpening,
  chunkChain,
  decodeChunk,
  decodeFrame,
  decodeHeader,
  decodePayload,
  encodeAbort,
  encodeData,
  encodeEnd,
  encodePause,
  encodeResume,
  HermesError,
  judgeChunk,
  LIMITS,
  MAX_CHUNK_BODY,
  Reader,
  readEndPayload,
  sha256Hex,
  toHex,
  verifyEnvelope,
  verifyPayload,
} from '../../src/index.ts'
import { bytesOf } from './scene.ts'
import { expected, knownKeys, type Read, read, verdicts } from './support.ts'

const { openings, refused_openings, chunks, refused_chunks, conversation, broken } = read('streams')
const keys = knownKeys()

function open(bytes: Uint8Array, from: string) {
  const reader = new Reader(bytes)
  const frame = decodeFrame(reader.part(LIMITS.batch, 'the frame'))
  reader.end('the frame')
  if (frame.tag === 2) throw new HermesError('MALFORMED')
  const header = decodeHeader(frame.header)
  const leaf = verifyEnvelope(frame, keys.get(from) as never)
  return { header, frame, leaf }
}

function opening(vector: Read) {
  const { header, frame, leaf } = open(bytesOf(vector.bytes), 'pm')
  return { header, leaf, where: checkOpening(header, frame) }
}

describe('openings of streams', () => {
  it.each(openings as Read[])('are accepted: $name', (vector) => {
    const { header, leaf, where } = opening(vector)
    expect(leaf).toBe(vector.leaf)
    expect(where).toBe(vector.payload_apart ? 'apart' : 'inline')
    if (!vector.payload_apart) return
    const payload = bytesOf([vector.payload_apart])
    expect(header).toMatchObject({ payload_size: payload.length, payload_sha256: sha256Hex(payload) })
  })

  it('are refused', () => {
    expect(verdicts(refused_openings, opening)).toEqual(expected(refused_openings))
  })
})

/** Cuts exactly one chunk, the way a receiver does: judged by its first bytes, then whole. */
function cut(bytes: Uint8Array): Chunk {
  const judged = judgeChunk(bytes.subarray(0, 6))
  if (!judged || bytes.length !== judged.whole) throw new HermesError('MALFORMED', { message: 'not one whole chunk' })
  const reader = new Reader(bytes)
  const chunk = decodeChunk(reader.part(MAX_CHUNK_BODY, 'a chunk'))
  reader.end('the chunk')
  return chunk
}

function encoded(chunk: Read): Uint8Array {
  switch (chunk.kind) {
    case 'data':
      return encodeData(chunk.index, Buffer.from(chunk.bytes, 'hex'))
    case 'end':
      return encodeEnd(Buffer.from(chunk.frame, 'hex'))
    case 'pause':
      return encodePause()
    case 'resume':
      return encodeResume()
    default:
      return encodeAbort(chunk.code)
  }
}

function shown(chunk: Chunk): Read {
  if (chunk.kind === 'data') return { ...chunk, bytes: toHex(chunk.bytes) }
  return chunk.kind === 'end' ? { ...chunk, frame: toHex(chunk.frame) } : chunk
}

describe('chunks', () => {
  it.each(chunks as Read[])('are written and read: $name', ({ chunk, sent }) => {
    expect(shown(cut(Buffer.from(sent, 'hex')))).toEqual(chunk)
    expect(toHex(encoded(chunk))).toBe(sent)
  })

  it('are refused', () => {
    expect(verdicts(refused_chunks, ({ bytes }) => cut(bytesOf(bytes)))).toEqual(expected(refused_chunks))
  })
})

/** Reads all that one side sends; gives the payload of its end. */
function follow(sent: readonly string[], hashes: string[] = []) {
  const chain = chunkChain(conversation.leaf)
  for (const [place, hex] of sent.entries()) {
    const bytes = Buffer.from(hex, 'hex')
    const chunk = cut(bytes)
    if (chunk.kind === 'data') {
      chain.add(chunk.index, bytes)
      hashes.push(chain.hash)
    }
    if (chunk.kind !== 'end') continue
    const { header, frame } = open(chunk.frame, conversation.signer)
    verifyPayload(header, frame)
    if (header.in_reply_to !== conversation.leaf) throw new HermesError('STREAM_BROKEN')
    const end = readEndPayload(decodePayload(header.content_type, frame.payload))
    chain.check(end)
    expect(place).toBe(sent.length - 1)
    return end
  }
  throw new HermesError('STREAM_BROKEN')
}

describe('a whole stream', () => {
  it('is proven by its end', () => {
    const hashes: string[] = []
    expect(follow(conversation.sent, hashes)).toEqual(conversation.end)
    expect(hashes).toEqual(conversation.hashes)
  })

  it('is broken by whatever is missing, added or moved', () => {
    expect(verdicts(broken, ({ sent }) => follow(sent))).toEqual(expected(broken))
  })
})
