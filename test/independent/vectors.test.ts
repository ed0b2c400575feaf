import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { judgeArrival, judgeBroadcast } from './arrival.ts'
import { cursor, domain, hex, unhex } from './bytes.ts'
import { followChain } from './chain.ts'
import { fromFile, readDocument } from './documents.ts'
import { sha256, type VerifyingKey, verifyingKey } from './ed25519.ts'
import { leafOf, readPayload, signedBytes, verifyBytes } from './envelope.ts'
import { type RawFrame, readFrame } from './frame.ts'
import { readMessage, transcript, transcriptHolds } from './handshake.ts'
import { readHeader } from './header.ts'
import { parseJson } from './json.ts'
import { batchBytes, coversAll, proves, readProof, treeRoot } from './merkle.ts'
import { parseMsgpack } from './msgpack.ts'
import * as names from './names.ts'
import { peerId, providerCid, providerKey } from './records.ts'
import { Refused } from './refused.ts'
import { type Chunk, followStream, readChunk, readOpening } from './stream.ts'
import { bytesOf, disagreements, knownKeys, type Read, read } from './support.ts'

const keyOf = knownKeys()
const key = (agent: string): VerifyingKey => keyOf(agent) ?? expect.fail(`no key of ${agent}`)

it('the decoder shares no code with the implementation', () => {
  const files = readdirSync(import.meta.dirname).filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
  const imports = files.flatMap((name) => {
    const text = readFileSync(join(import.meta.dirname, name), 'utf8')
    return [...text.matchAll(/from '([^']+)'/g)].map(([, specifier]) => specifier as string)
  })
  expect(imports.filter((specifier) => !/^(\.\/[a-z0-9-]+\.ts|node:(crypto|fs))$/.test(specifier))).toEqual([])
})

describe('a decoder written from the wire text agrees on', () => {
  it('keys, fingerprints and peer ids', () => {
    const { keys, refused, signatures } = read('keys')
    for (const { agent_id, public_key, fingerprint, peer_id } of keys) {
      expect(key(agent_id).fingerprint).toBe(fingerprint)
      expect(peerId(unhex(public_key))).toBe(peer_id)
    }
    expect(disagreements(refused, ({ public_key }) => verifyingKey(unhex(public_key)))).toEqual([])
    const holds = ({ message, signature }: Read) => key('pm').verifies(unhex(message), unhex(signature))
    expect(signatures.map(holds)).toEqual(signatures.map((one: Read) => one.holds))
  })

  it('names and ids', () => {
    const { about: _, ...kinds } = read('names')
    const judges: Record<string, (text: unknown) => boolean> = {
      network: names.isName,
      topic: names.isName,
      capability: names.isCapability,
      agent_id: names.isAgentId,
      message_id: names.isMessageId,
      correlation_id: names.isCorrelationId,
      session_id: names.isSessionId,
    }
    for (const [kind, { accepted, refused }] of Object.entries<Read>(kinds)) {
      expect(accepted.filter((text: string) => judges[kind]?.(text) !== true)).toEqual([])
      expect(refused.filter((text: string) => judges[kind]?.(text) !== false)).toEqual([])
    }
  })

  it('frames', () => {
    const { accepted, refused } = read('frames')
    expect(disagreements([...accepted, ...refused], (vector) => readFrame(bytesOf(vector)))).toEqual([])
    for (const { name: _, bytes, ...parts } of accepted) expect(shownFrame(readFrame(unhex(bytes)))).toEqual(parts)
  })

  it('headers and their defaults', () => {
    const { accepted, refused } = read('headers')
    const all = [...accepted, ...refused]
    expect(disagreements(all, (vector) => readHeader(bytesOf(vector)))).toEqual([])
    for (const vector of accepted) expect(readHeader(bytesOf(vector))).toEqual(vector.header)
  })

  it.each([
    ['payload-json', (bytes: Uint8Array) => parseJson(bytes, 'payload')],
    ['payload-msgpack', parseMsgpack],
  ] as const)('%s', (file, parse) => {
    const { encoded, spellings, refused } = read(file)
    const all = [...encoded, ...spellings, ...refused]
    expect(disagreements(all, (vector) => parse(bytesOf(vector)))).toEqual([])
    const told = [...encoded, ...spellings].filter((vector) => 'value' in vector)
    for (const vector of told) expect(parse(bytesOf(vector))).toStrictEqual(vector.value)
  })

  it('what is signed of an envelope, and by whom', () => {
    const { domains, accepted, spellings, refused } = read('signing')
    for (const { what, prefix } of domains) expect(hex(domain(what))).toBe(prefix)
    for (const { header, m, leaf } of accepted) {
      expect(hex(signedBytes(Buffer.from(header)))).toBe(m)
      expect(hex(leafOf(Buffer.from(header)))).toBe(leaf)
    }
    const arrive = (vector: Read) => verifyBytes(bytesOf(vector), { self: 'coder', neighbour: 'pm', keyOf })
    expect(disagreements([...accepted, ...spellings, ...refused], arrive)).toEqual([])
    for (const vector of accepted) expect(arrive(vector).map(readPayload)).toEqual([vector.value])
  })

  it('trees, proofs and batches', () => {
    const { leaves, trees, batches, refused } = read('merkle')
    const pm = key('pm')
    const prove = (leaf: string, proof: string) => {
      const at = cursor(unhex(proof), 'proof')
      const read = readProof(at)
      at.end()
      if (!proves(pm, unhex(leaf), read)) throw new Refused('proof', 'does not hold')
    }
    for (const { count, root, signed, signature, proofs } of trees) {
      const own = leaves.slice(0, count).map(unhex)
      expect(hex(treeRoot(own))).toBe(root)
      expect(hex(batchBytes(count, treeRoot(own)))).toBe(signed)
      expect(coversAll(pm, own, unhex(signature))).toBe(true)
      for (const [index, proof] of proofs.entries()) prove(leaves[index], proof)
    }
    expect(disagreements(refused, ({ leaf, proof }) => prove(leaf, proof))).toEqual([])
    const arrive = (bytes: string) => verifyBytes(unhex(bytes), { self: 'coder', neighbour: 'pm', keyOf })
    for (const { bytes, leaves: own, alone } of batches) {
      expect(arrive(bytes).map(({ leaf }) => leaf)).toEqual(own)
      expect(alone.flatMap(arrive).map(({ leaf }: Read) => leaf)).toEqual(own)
    }
  })

  it('hops', () => {
    const { accepted, refused } = read('hops')
    const arrive = (vector: Read) =>
      verifyBytes(bytesOf(vector), { self: vector.self, neighbour: vector.neighbour, keyOf })
    expect(disagreements([...accepted, ...refused], arrive)).toEqual([])
    for (const vector of accepted) {
      const [envelope] = arrive(vector)
      expect(envelope?.hops).toEqual(vector.hops.map(({ json }: Read) => JSON.parse(json)))
      expect(envelope?.hops.at(-1)?.budget_ms).toBe(vector.budget_ms)
    }
  })

  it('streams: openings, chunks, and what a whole stream proves', () => {
    const { openings, refused_openings, chunks, refused_chunks, conversation, broken } = read('streams')
    const open = (vector: Read) => readOpening(bytesOf(vector), { self: 'coder', neighbour: 'pm', keyOf })
    expect(disagreements([...openings, ...refused_openings], open)).toEqual([])
    for (const vector of openings) {
      expect(open(vector)).toMatchObject({ leaf: vector.leaf, apart: vector.payload_apart !== undefined })
      if (vector.payload_apart === undefined) continue
      const payload = bytesOf({ bytes: [vector.payload_apart] })
      const bound = { payload_size: payload.length, payload_sha256: hex(sha256(payload)) }
      expect(open(vector).header).toMatchObject(bound)
    }
    expect(disagreements(refused_chunks, (vector) => readChunk(bytesOf(vector)))).toEqual([])
    for (const { chunk, sent } of chunks) expect(shownChunk(readChunk(unhex(sent)))).toEqual(chunk)
    const follow = ({ sent }: Read) =>
      followStream(conversation.leaf, sent.map(unhex), { self: 'pm', neighbour: conversation.signer, keyOf })
    expect(follow(conversation)).toEqual({ end: conversation.end, hashes: conversation.hashes })
    expect(disagreements(broken, follow)).toEqual([])
  })

  it('handshake messages', () => {
    const { conversation, accepted, spellings, refused, refusals } = read('handshake')
    const open = (vector: Read) => readMessage(bytesOf(vector), vector.kind)
    expect(disagreements([...accepted, ...spellings, ...refused], open)).toEqual([])
    for (const vector of [...accepted, ...spellings]) expect(open(vector)).toEqual({ message: vector.fields })
    for (const { text, code } of refusals) expect(readMessage(Buffer.from(text), 'welcome')).toEqual({ told: code })
    const signed = cursor(unhex(conversation.proof), 'handshake')
    readMessage(signed.part(8192), 'proof')
    signed.take(64)
    signed.end()
  })

  it('handshake transcripts', () => {
    const { transcripts, refused_transcripts } = read('handshake')
    const hash = (vector: Read) => transcript(vector, vector.messages.map(unhex))
    const holds = (vector: Read) =>
      transcriptHolds(key(vector.signer), vector.what, hash(vector), unhex(vector.signature))
    for (const vector of transcripts) expect(hex(hash(vector))).toBe(vector.hash)
    expect(transcripts.filter((vector: Read) => !holds(vector))).toEqual([])
    expect(refused_transcripts.filter(holds)).toEqual([])
  })

  it('documents', () => {
    const { accepted, refused } = read('documents')
    const open = (vector: Read) =>
      vector.kind === 'file'
        ? fromFile(vector.file)
        : readDocument(bytesOf(vector), vector.kind, key(vector.signer), vector.now)
    expect(disagreements([...accepted, ...refused], open)).toEqual([])
    for (const vector of accepted) {
      const thousandths = Math.round(vector.value.success_rate_15m * 1000)
      const onWire = vector.kind === 'presence' ? { success_rate_15m: thousandths } : {}
      expect(open(vector)).toEqual({ ...vector.value, ...onWire })
      expect(hex(fromFile(vector.file))).toBe(vector.bytes)
      if (vector.digest) expect(hex(sha256(unhex(vector.bytes)))).toBe(vector.digest)
    }
  })

  it('chains of certificates', () => {
    const { network, tolerance_ms, organisation, accepted, refused } = read('chains')
    const follow = ({ agent_id, key, certificates, now, demands }: Read) =>
      followChain(
        { agentId: agent_id, key: unhex(key), certificates: certificates.map(unhex) },
        {
          network,
          now,
          toleranceMs: tolerance_ms,
          organisation: verifyingKey(unhex(organisation)),
          demands: demands === true,
        },
      )
    expect(disagreements([...accepted, ...refused], follow)).toEqual([])
    for (const vector of accepted) {
      const { signer, serial, organisation: says } = vector
      expect(follow(vector)).toEqual({ signer, serial, ...(says ? { organisation: says } : {}) })
    }
  })

  it('provider records', () => {
    for (const { network, capability, key: name, text } of read('records').providers) {
      expect(providerKey(network, capability)).toBe(name)
      expect(providerCid(name)).toBe(text)
    }
  })

  it('what is refused on arrival', () => {
    const { receiver, accepted, refused, broadcasts, refused_broadcasts } = read('arrivals')
    const arrive = (vector: Read) =>
      judgeArrival(bytesOf(vector), { ...receiver, ...('link' in vector ? { link: vector.link } : {}) }, keyOf)
    expect(disagreements([...accepted, ...refused], arrive)).toEqual([])
    const hear = (vector: Read) => judgeBroadcast(bytesOf(vector), vector.topic, receiver, keyOf)
    expect(disagreements([...broadcasts, ...refused_broadcasts], hear)).toEqual([])
  })
})

/** A frame in the form of its vector; a proof is one run of bytes there. */
function shownFrame(frame: RawFrame): object {
  const shown = (parts: Read): Read =>
    Object.fromEntries(
      Object.entries<Read>(parts).map(([field, one]) => {
        if (one instanceof Uint8Array) return [field, hex(one)]
        if (Array.isArray(one)) return [field, one.map(shown)]
        return [field, one]
      }),
    )
  if (frame.tag === 2) return shown(frame)
  const { parts, hops, tag } = frame
  const rest = shown({ tag, ...parts, hops })
  if (tag === 0) return { ...rest, signature: hex(frame.signature) }
  const { signature, index, count, siblings } = frame.proof
  const body = Buffer.concat([signature, Uint8Array.of(index, count), ...siblings])
  return { ...rest, proof: hex(body) }
}

function shownChunk(chunk: Chunk): object {
  if (chunk.kind === 'data') return { ...chunk, bytes: hex(chunk.bytes) }
  return chunk.kind === 'end' ? { ...chunk, frame: hex(chunk.frame) } : chunk
}
