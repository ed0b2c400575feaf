import { describe, expect, it } from 'vitest'
import {
  type Certificate,
  decodeChallenge,
  decodeHello,
  decodeProofMessage,
  decodeWelcome,
  type Endorsement,
  encodeHello,
  encodeProof,
  encodeRefusal,
  fromFile,
  inDomain,
  type Manifest,
  manifestDigest,
  openCertificate,
  openEndorsement,
  openManifest,
  openPresence,
  openRevocation,
  type Presence,
  part,
  type Revocation,
  signCertificate,
  signEndorsement,
  signingKey,
  signManifest,
  signPresence,
  signRevocation,
  signTranscript,
  type TranscriptContext,
  toFile,
  toHex,
  transcriptOf,
  utf8,
  verifyTranscript,
} from '../../src/index.ts'
import { fieldsOf } from './document-samples.ts'
import { bytesOf, keyOf, type Name } from './scene.ts'
import { codeOf, expected, knownKeys, type Read, read, verdicts } from './support.ts'

const unhex = (text: string) => Buffer.from(text, 'hex')
const unbase = (text: string) => new Uint8Array(Buffer.from(text, 'base64url'))
const keys = knownKeys()

describe('documents', () => {
  const { accepted, refused } = read('documents')

  const open = (vector: Read): object => {
    const signer = keys.get(vector.signer) ?? expect.fail('no such key')
    const bytes = vector.kind === 'file' ? fromFile(vector.file) : bytesOf(vector.bytes)
    // A document of an instance is signed by the key of its certificate, which chains.json is about.
    const given = vector.value?.certificates ? () => signer : undefined
    if (vector.kind === 'endorsement') return openEndorsement(bytes).endorsement
    if (vector.kind === 'presence') return openPresence(bytes, given).presence
    if (vector.kind === 'revocation') return openRevocation(bytes)
    return vector.kind === 'manifest'
      ? openManifest(bytes, given ?? signer)
      : openCertificate(bytes, signer, vector.now)
  }

  /** The value of a vector with its keys as bytes. */
  const unpacked = (vector: Read): Read => ({
    ...vector.value,
    ...Object.fromEntries(
      ['key', 'instance_key', 'agent_key', 'team_key', 'signer']
        .filter((field) => field in vector.value && !vector.value[field].startsWith('sha256:'))
        .map((field) => [field, unbase(vector.value[field])]),
    ),
    ...(vector.value.certificates ? { certificates: vector.value.certificates.map(unbase) } : {}),
  })

  it.each(accepted as Read[])('are read and written: $name', (vector) => {
    expect(fieldsOf(open(vector))).toEqual(vector.value)
    const key = signingKey(keyOf(vector.signer as Name).seed)
    const value = unpacked(vector)
    const sign = {
      manifest: () => signManifest(value as Manifest, key),
      presence: () => signPresence(value as Presence, key),
      certificate: () => signCertificate(value as Certificate, key),
      endorsement: () => signEndorsement(value as Endorsement, key),
      revocation: () => signRevocation(value as Revocation, key),
    }[vector.kind as 'manifest' | 'presence' | 'certificate' | 'endorsement' | 'revocation']
    expect(toHex(sign())).toBe(vector.bytes)
    expect(toFile(unhex(vector.bytes))).toEqual(vector.file)
    expect(toHex(fromFile(vector.file))).toBe(vector.bytes)
    if (vector.digest) expect(manifestDigest(unhex(vector.bytes))).toBe(vector.digest)
  })

  it('are refused with a code', () => {
    expect(verdicts(refused, (vector) => open({ ...vector, signer: vector.signer ?? 'coder' }))).toEqual(
      expected(refused),
    )
  })
})

describe('the handshake', () => {
  const { conversation, accepted, spellings, refused, refusals, transcripts, refused_transcripts } = read('handshake')
  const decoders: Record<string, (body: Uint8Array) => object> = {
    hello: decodeHello,
    challenge: decodeChallenge,
    proof: decodeProofMessage,
    welcome: decodeWelcome,
  }
  const decode = (vector: Read) => {
    const body = vector.text === undefined ? bytesOf(vector.bytes) : Buffer.from(vector.text)
    return (decoders[vector.kind] ?? expect.fail('no such message'))(body)
  }
  const shown = (message: Read) =>
    'certificates' in message
      ? fieldsOf({
          ...message,
          certificates: message.certificates.map((one: Uint8Array) => Buffer.from(one).toString('base64url')),
        })
      : message

  it.each([...accepted, ...spellings] as Read[])('reads its messages: $name', (vector) => {
    expect(shown(decode(vector))).toEqual(vector.fields)
  })

  it.each(accepted as Read[])('writes its messages: $name', (vector) => {
    const fields = decode(vector) as Read
    const bytes = vector.kind === 'hello' || vector.kind === 'challenge' ? encodeHello(fields) : encodeProof(fields)
    expect(toHex(bytes)).toBe(toHex(part(utf8(vector.text))))
  })

  it('refuses messages that do not have their form', () => {
    expect(verdicts(refused, decode)).toEqual(expected(refused))
  })

  it.each(refusals as Read[])(
    'hears a refusal in the place of any message: $name',
    ({ text, written, code, offset_ms }) => {
      for (const decoder of Object.values(decoders)) {
        expect(codeOf(() => decoder(Buffer.from(text)))).toBe(code)
        if (offset_ms !== undefined)
          expect(() => decoder(Buffer.from(text))).toThrow(expect.objectContaining({ details: { offset_ms } }))
      }
      if (written) expect(toHex(encodeRefusal(written))).toBe(toHex(part(utf8(text))))
    },
  )

  const contextOf = (vector: Read): TranscriptContext => ({ ...vector, messages: vector.messages.map(unhex) })

  it.each(transcripts as Read[])('signs $name', (vector) => {
    const hash = transcriptOf(contextOf(vector))
    expect(toHex(hash)).toBe(vector.hash)
    expect(toHex(inDomain(vector.what, hash))).toBe(vector.signed)
    expect(toHex(signTranscript(vector.what, contextOf(vector), keyOf(vector.signer)))).toBe(vector.signature)
  })

  const holds = (vector: Read) =>
    verifyTranscript(
      vector.what,
      contextOf(vector),
      unhex(vector.signature),
      keys.get(vector.signer) ?? expect.fail('no such key'),
    )

  it('verifies what it signs, and nothing else', () => {
    expect(transcripts.filter((vector: Read) => !holds(vector))).toEqual([])
    expect(refused_transcripts.filter(holds).map(({ name }: Read) => name)).toEqual([])
  })

  it('is, as a conversation, its four messages', () => {
    const [three, four] = transcripts
    expect(`${three.messages[2]}${three.signature}`).toBe(conversation.proof)
    expect(`${four.messages[3]}${four.signature}`).toBe(conversation.welcome)
    expect(four.messages.slice(0, 3)).toEqual([conversation.hello, conversation.challenge, conversation.proof])
  })
})
