import {
  bindPayload,
  type Chunk,
  chunkChain,
  concat,
  encodeAbort,
  encodeData,
  encodeEnd,
  encodePause,
  encodeResume,
  type HeaderDraft,
  LIMITS,
  MAX_CHUNK_BODY,
  MAX_SINGLE_FRAME,
  part,
  toHex,
  utf8,
} from '../../src/index.ts'
import {
  EMPTY_PAYLOAD,
  type Envelope,
  envelopeOf,
  envelopeOpening,
  frameOf,
  idOf,
  KEYS,
  NOW,
  type Pieces,
  requestDraft,
  UNSEQUENCED,
  type Vector,
} from './scene.ts'

const LARGE = LIMITS.envelope + 1

function opening(name: string, envelope: Envelope, payload: Vector = {}): Vector {
  return { name, bytes: toHex(frameOf(envelope)), leaf: envelope.leaf, ...payload }
}

const streaming = (changes: Partial<HeaderDraft> = {}): HeaderDraft =>
  requestDraft({ message_id: idOf('msg', 'stream'), call_type: 'stream', sequence: undefined, ...changes })

/** A payload that is one byte over and over: its hash is in the header, its bytes are told by a count. */
function large(draft: HeaderDraft, size: number): Envelope {
  return envelopeOpening({ ...draft, ...bindPayload(new Uint8Array(size).fill(0x78)) })
}

const STREAM = envelopeOf(streaming(), { input: 'draft' })

function openings(): Vector[] {
  const request = requestDraft({ message_id: idOf('msg', 'large'), sequence: undefined })
  const response = requestDraft({
    ...UNSEQUENCED,
    message_type: 'response',
    in_reply_to: STREAM.leaf,
    message_id: idOf('msg', 'large'),
  })
  const apart = (size: number) => ({ payload_apart: { repeat: '78', times: size } })
  return [
    opening('a streaming call with its input', STREAM),
    opening(
      'a streaming call with an input that travels apart',
      large(streaming({ message_id: idOf('msg', 'both') }), LARGE),
      apart(LARGE),
    ),
    opening('a request with a payload of 1 MiB and a byte', large(request, LARGE), apart(LARGE)),
    opening('a response with a payload of 1 MiB and a byte', large(response, LARGE), apart(LARGE)),
    opening(
      'a payload that fits in an envelope only without its header',
      large(request, LIMITS.envelope),
      apart(LIMITS.envelope),
    ),
  ]
}

function refusedOpenings(): Vector[] {
  const no = (name: string, code: string, bytes: Uint8Array): Vector => ({ name, code, bytes: toHex(bytes) })
  const small = envelopeOf(requestDraft(), {})
  const inline = envelopeOpening(
    requestDraft({ sequence: undefined, ...bindPayload(new Uint8Array(LARGE).fill(0x78)) }),
  )
  return [
    no('a request that belongs on a link', 'MALFORMED', frameOf(small)),
    no('a heartbeat', 'MALFORMED', frameOf(envelopeOf(requestDraft({ ...UNSEQUENCED, message_type: 'heartbeat' })))),
    no(
      'a payload of 64 MiB and a byte, told and not sent',
      'PAYLOAD_TOO_LARGE',
      frameOf(
        envelopeOpening(
          requestDraft({ sequence: undefined, payload_sha256: 'a'.repeat(64), payload_size: LIMITS.payload + 1 }),
        ),
      ),
    ),
    no(
      'a large payload, and bytes in the envelope all the same',
      'PAYLOAD_MISMATCH',
      frameOf({ ...inline, payload: EMPTY_PAYLOAD }),
    ),
    no(
      'another input than the streaming call was signed with',
      'PAYLOAD_MISMATCH',
      frameOf({ ...STREAM, payload: utf8('{"input":"other"}') }),
    ),
    no(
      'a streaming call that another key signed',
      'BAD_SIGNATURE',
      frameOf(envelopeOf(streaming(), { input: 'draft' }, KEYS.stranger)),
    ),
  ]
}

const TEXT = utf8('片段 🚚')

function shown(chunk: Chunk): Vector {
  if (chunk.kind === 'data') return { ...chunk, bytes: toHex(chunk.bytes) }
  return chunk.kind === 'end' ? { ...chunk, frame: toHex(chunk.frame) } : chunk
}

function chunks(): Vector[] {
  const yes = (name: string, chunk: Chunk, sent: Uint8Array): Vector => ({
    name,
    chunk: shown(chunk),
    sent: toHex(sent),
  })
  const frame = frameOf(envelopeOf(endDraft(STREAM.leaf), {}))
  const data = (name: string, index: number, bytes: Uint8Array) =>
    yes(name, { kind: 'data', index, bytes }, encodeData(index, bytes))
  return [
    data('the first piece of data', 1, TEXT),
    data('one byte', 2, Uint8Array.of(0)),
    data('an index of two bytes', 300, TEXT),
    data('an index of five bytes', 2 ** 34, TEXT),
    data('a length of two bytes', 3, new Uint8Array(300).fill(0x78)),
    yes('an end', { kind: 'end', frame }, encodeEnd(frame)),
    yes('a pause', { kind: 'pause' }, encodePause()),
    yes('a resume', { kind: 'resume' }, encodeResume()),
    yes('an abort', { kind: 'abort', code: 'CANCELLED' }, encodeAbort('CANCELLED')),
    yes(
      'an abort with the longest code',
      { kind: 'abort', code: `A${'9'.repeat(63)}` },
      encodeAbort(`A${'9'.repeat(63)}`),
    ),
  ]
}

const byte = (...values: number[]) => Uint8Array.from(values)
const length = (value: number) =>
  toHex(part(new Uint8Array(value)).subarray(0, part(new Uint8Array(value)).length - value))

function refusedChunks(): Vector[] {
  const no = (name: string, code: string, bytes: Pieces): Vector => ({ name, code, bytes })
  const body = (name: string, code: string, ...pieces: Uint8Array[]) => no(name, code, toHex(part(concat(pieces))))
  const most = 1 + 5 + LIMITS.chunk
  return [
    no('no bytes', 'MALFORMED', ''),
    no('an empty body', 'MALFORMED', '00'),
    no('a body that is cut off', 'MALFORMED', '05000168'),
    no('a byte behind the chunk', 'MALFORMED', '010200'),
    no('a length with needless bytes', 'MALFORMED', '810002'),
    no('a length of six bytes', 'LIMIT_EXCEEDED', 'ffffffffff01'),
    no('a length over that of every kind, and nothing more', 'LIMIT_EXCEEDED', length(MAX_CHUNK_BODY + 1)),
    no('data: a length over its limit, and nothing more but the kind', 'LIMIT_EXCEEDED', `${length(most + 1)}00`),
    no(
      'end: a length over its limit, and nothing more but the kind',
      'LIMIT_EXCEEDED',
      `${length(6 + MAX_SINGLE_FRAME + 1)}01`,
    ),
    no('data of 64 KiB and a byte behind a short index', 'LIMIT_EXCEEDED', [
      `${length(2 + LIMITS.chunk + 1)}0001`,
      { repeat: '78', times: LIMITS.chunk + 1 },
    ]),
    body('data without an index', 'MALFORMED', byte(0)),
    body('data that ends inside its index', 'MALFORMED', byte(0, 0x80)),
    body('data without data', 'MALFORMED', byte(0, 1)),
    body('data with index 0', 'MALFORMED', byte(0, 0), TEXT),
    body('an index with needless bytes', 'MALFORMED', byte(0, 0x81, 0), TEXT),
    body('an index of six bytes', 'LIMIT_EXCEEDED', byte(0, 0xff, 0xff, 0xff, 0xff, 0xff, 1), TEXT),
    body('an end without a frame', 'MALFORMED', byte(1)),
    body('an end with a byte behind its frame', 'MALFORMED', byte(1, 1, 0, 0)),
    body('an end with a frame that is cut off', 'MALFORMED', byte(1, 5, 0)),
    body('a pause with a byte', 'LIMIT_EXCEEDED', byte(2, 0)),
    body('a resume with a byte', 'LIMIT_EXCEEDED', byte(3, 0)),
    body('an abort without a code', 'MALFORMED', byte(4)),
    body('an abort with a code in small letters', 'MALFORMED', byte(4), utf8('timeout')),
    body('an abort with a code of 65 letters', 'LIMIT_EXCEEDED', byte(4), utf8('A'.repeat(65))),
    body('kind 5', 'UNKNOWN_TAG', byte(5)),
    body('kind 255', 'UNKNOWN_TAG', byte(255)),
  ]
}

function endDraft(leaf: string, changes: Partial<HeaderDraft> = {}): HeaderDraft {
  return requestDraft({
    ...UNSEQUENCED,
    message_type: 'end',
    message_id: idOf('msg', 'stream'),
    sender: { agent_id: 'coder', key: KEYS.coder.publicKey.fingerprint },
    recipient: { agent_id: 'pm' },
    in_reply_to: leaf,
    timestamp: NOW + 1,
    expires_at: undefined,
    ...changes,
  })
}

/** A whole stream of `coder` after the opening above: what it sends, and the hash after each chunk. */
function conversation(): Vector {
  const chain = chunkChain(STREAM.leaf)
  const sent: string[] = []
  const hashes: string[] = []
  for (const [index, text] of ['"一"', '"two"', '"三"'].entries()) {
    const chunk = encodeData(index + 1, utf8(text))
    chain.add(index + 1, chunk)
    sent.push(toHex(chunk))
    hashes.push(chain.hash)
    if (index === 1) sent.push(toHex(encodePause()), toHex(encodeResume()))
  }
  const payload = { status: 'completed', count: chain.count, running_hash: chain.hash, output: { tokens: 3 } }
  const end = encodeEnd(frameOf(envelopeOf(endDraft(STREAM.leaf), payload, KEYS.coder)))
  return { leaf: STREAM.leaf, signer: 'coder', sent: [...sent, toHex(end)], hashes, end: payload }
}

/** The same with something wrong: all of these are STREAM_BROKEN to whoever reads them. */
function broken(): Vector[] {
  const { sent, hashes, end } = conversation() as { sent: string[]; hashes: string[]; end: Record<string, unknown> }
  const [first, second, pause, resume, third, last] = sent as [string, string, string, string, string, string]
  const no = (name: string, chunks: readonly string[]): Vector => ({ name, sent: chunks, code: 'STREAM_BROKEN' })
  const ended = (changes: object, draft: HeaderDraft = endDraft(STREAM.leaf)) =>
    toHex(encodeEnd(frameOf(envelopeOf(draft, { ...end, ...changes }, KEYS.coder))))
  const changed = toHex(encodeData(2, utf8('"TWO"')))
  return [
    no('no end', [first, second, third]),
    no('nothing at all', []),
    no('a chunk is missing', [first, third, last]),
    no('the first chunk is missing', [second, third, last]),
    no('the last chunk is missing', [first, second, last]),
    no('a chunk twice', [first, second, second, third, last]),
    no('two chunks in the other order', [second, first, third, last]),
    no('another chunk than was signed', [first, changed, third, last]),
    no('an end that tells of fewer chunks', [first, second, pause, resume, third, ended({ count: 2 })]),
    no('an end with the hash of an earlier chunk', [first, second, third, ended({ running_hash: hashes[1] })]),
    no('an end that answers another stream', [first, second, third, ended({}, endDraft('c'.repeat(64)))]),
  ]
}

export function streamVectors(): Vector {
  return {
    about:
      'Streams. `openings` are whole frames of pm to coder; a payload that travels apart is told in `payload_apart` and is no part of the frame. `chunks` are cut one by one (`sent` is the whole chunk). `conversation` is all that coder sends on the stream whose opening has that leaf, with the running hash after each chunk of data; each of `broken` is such a stream that must not pass for a whole one.',
    openings: openings(),
    refused_openings: refusedOpenings(),
    chunks: chunks(),
    refused_chunks: refusedChunks(),
    conversation: conversation(),
    broken: broken(),
  }
}
