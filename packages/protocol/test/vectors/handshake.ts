import {
  concat,
  encodeHello,
  encodeProof,
  encodeRefusal,
  type Hello,
  inDomain,
  peerIdOf,
  sha256,
  toBase64url,
  toHex,
  transcriptOf,
  utf8,
} from '../../src/index.ts'
import { decisions } from './handshake-decisions.ts'
import { handshakeFaults } from './handshake-faults.ts'
import { CHOSEN, type Context, challengeOf, conversation, helloOf, PROOF, WELCOME } from './handshake-samples.ts'
import { KEYS, type Name, NOW, type Vector } from './scene.ts'

/** The JSON of a message, its length taken off. */
const textOf = (message: Uint8Array) => Buffer.from(message.subarray(message.length > 128 ? 2 : 1)).toString('latin1')

const shown = (hello: Hello) => ({
  ...hello,
  nonce: toBase64url(hello.nonce),
  key: toBase64url(hello.key),
  certificates: hello.certificates.map(toBase64url),
})

function messages(): Vector[] {
  const hello = (name: string, value: Hello): Vector => {
    return { name, kind: 'hello', text: textOf(encodeHello(value)), fields: shown(value) }
  }
  const certificates = [utf8('a signed document'), utf8('another'), utf8('a third')]
  return [
    hello('hello', helloOf('pm')),
    hello(
      'hello with features and certificates',
      helloOf('billing/ledger', {
        versions: ['1.0', '1.1', '2.0'],
        features: ['batch', 'future_thing-2'],
        certificates,
      }),
    ),
    hello('hello of a peer that takes JSON only', helloOf('pm', { content_types: ['application/json'] })),
    {
      name: 'challenge',
      kind: 'challenge',
      text: textOf(encodeHello(challengeOf('coder'))),
      fields: shown(challengeOf('coder')),
    },
    { name: 'proof', kind: 'proof', text: textOf(encodeProof(PROOF)), fields: PROOF },
    {
      name: 'proof of a peer that keeps revocations',
      kind: 'proof',
      text: textOf(encodeProof({ ...PROOF, revocations: toHex(sha256(utf8('revocations'))) })),
      fields: { ...PROOF, revocations: toHex(sha256(utf8('revocations'))) },
    },
    { name: 'welcome', kind: 'welcome', text: textOf(encodeProof(WELCOME)), fields: WELCOME },
  ]
}

/** Messages that are not spelled as ours, and what they mean. */
function spellings(): Vector[] {
  const fields = shown(helloOf('pm'))
  const text = (value: object) => JSON.stringify(value)
  return [
    {
      name: 'keys in another order',
      kind: 'hello',
      text: text(Object.fromEntries(Object.entries(fields).reverse())),
      fields,
    },
    {
      name: 'unknown keys are ignored',
      kind: 'hello',
      text: text({ ...fields, mood: 'good', more: [1, { x: null }] }),
      fields,
    },
    {
      name: 'a content type that is not known is left out',
      kind: 'hello',
      text: text({ ...fields, content_types: ['application/cbor', 'application/json'] }),
      fields: { ...fields, content_types: ['application/json'] },
    },
    { name: 'unknown keys of a proof are ignored', kind: 'proof', text: text({ ...PROOF, more: 1 }), fields: PROOF },
  ]
}

function refusals(): Vector[] {
  const codes = [
    'HANDSHAKE_REFUSED',
    'UNSUPPORTED_VERSION',
    'NOT_ALLOWED',
    'IDENTITY_MISMATCH',
    'DUPLICATE_AGENT',
  ] as const
  const odd = (name: string, text: string): Vector => ({ name, text, code: 'HANDSHAKE_REFUSED' })
  return [
    ...codes.map((error_code) => {
      return {
        name: error_code,
        written: { error_code },
        text: textOf(encodeRefusal({ error_code })),
        code: error_code,
      }
    }),
    {
      name: 'CLOCK_SKEW with the offset',
      written: { error_code: 'CLOCK_SKEW', offset_ms: -660_000 },
      text: textOf(encodeRefusal({ error_code: 'CLOCK_SKEW', offset_ms: -660_000 })),
      code: 'CLOCK_SKEW',
      offset_ms: -660_000,
    },
    odd('a code that is not in the table', '{"error_code":"FUTURE_REASON"}'),
    odd('a code that a stranger is never told', '{"error_code":"PEER_RESTARTED"}'),
    odd('a code that is only local', '{"error_code":"INVALID_OPTION"}'),
    odd('a code that is no text', '{"error_code":7}'),
    odd('the name of a property that every object has', '{"error_code":"toString"}'),
  ]
}

interface Turn {
  name: string
  what?: 'proof' | 'welcome'
  signer?: Name
  context?: Partial<Context>
  messages: readonly Uint8Array[]
}

function transcripts(): { accepted: Vector[]; refused: Vector[] } {
  const { hello, challenge, proof, welcome, context } = conversation()
  const three = proof.subarray(0, -64)
  const four = welcome.subarray(0, -64)
  const entry = (
    signature: Uint8Array,
    { name, what = 'proof', signer = 'pm', context: changes, messages }: Turn,
  ): Vector => ({
    name,
    what,
    signer,
    ...context,
    ...changes,
    messages: messages.map(toHex),
    signature: toHex(signature),
  })
  const [ofProof, ofWelcome] = [proof.subarray(-64), welcome.subarray(-64)]
  const accept = (signature: Uint8Array, turn: Turn): Vector => {
    const hash = transcriptOf({ ...context, ...turn.context, messages: turn.messages })
    return { ...entry(signature, turn), hash: toHex(hash), signed: toHex(inDomain(turn.what ?? 'proof', hash)) }
  }
  const no = (turn: Turn, signature = ofProof): Vector => ({ ...entry(signature, turn), code: 'HANDSHAKE_REFUSED' })
  const first = [hello, challenge, three]
  const raw = transcriptOf({ ...context, messages: first })
  return {
    accepted: [
      accept(ofProof, { name: 'message 3', messages: first }),
      accept(ofWelcome, {
        name: 'message 4',
        what: 'welcome',
        signer: 'coder',
        messages: [hello, challenge, proof, four],
      }),
    ],
    refused: [
      no({ name: 'of another network', context: { network: 'other' }, messages: first }),
      no({ name: 'of another protocol', context: { protocol: '/hermes/stream/1.0.0' }, messages: first }),
      no({
        name: 'roles swapped',
        context: { initiator: context.responder, responder: context.initiator },
        messages: first,
      }),
      no({
        name: 'relayed: another initiator',
        context: { initiator: peerIdOf(KEYS.stranger.publicKey.raw) },
        messages: first,
      }),
      no({
        name: 'relayed: another responder',
        context: { responder: peerIdOf(KEYS.stranger.publicKey.raw) },
        messages: first,
      }),
      no({ name: 'another hello', messages: [encodeHello(helloOf('pm', { time: NOW + 1 })), challenge, three] }),
      no({
        name: 'another challenge: a replay',
        messages: [hello, encodeHello(challengeOf('coder', { nonce: sha256(utf8('fresh')) })), three],
      }),
      no({
        name: 'a feature taken out of the challenge',
        messages: [hello, encodeHello(challengeOf('coder', { versions: ['1.1'] })), three],
      }),
      no({ name: 'another proof', messages: [hello, challenge, encodeProof({ ...PROOF, next_sequence: 2 })] }),
      no({ name: 'without message 3', messages: [hello, challenge] }),
      no({ name: 'with its own signature', messages: [hello, challenge, proof] }),
      no({ name: 'by another key', signer: 'stranger', messages: first }),
      no({ name: 'a welcome in the place of a proof', messages: [hello, challenge, proof, four] }, ofWelcome),
      no({ name: 'a proof in the place of a welcome', what: 'welcome', messages: first }),
      no(
        {
          name: 'message 4 over a message 3 without its signature',
          what: 'welcome',
          signer: 'coder',
          messages: [hello, challenge, three, four],
        },
        ofWelcome,
      ),
      no({ name: 'signed without the domain', messages: first }, KEYS.pm.sign(raw)),
      no({ name: 'signed as an envelope', messages: first }, KEYS.pm.sign(inDomain('envelope', raw))),
      no(
        { name: 'the transcript domain instead of that of the proof', messages: first },
        KEYS.pm.sign(inDomain('transcript', raw)),
      ),
      no(
        { name: 'the messages signed without their lengths', messages: first },
        KEYS.pm.sign(inDomain('proof', sha256(concat(first)))),
      ),
    ],
  }
}

/** The messages as they go over the stream. */
function wire(): Vector {
  const { hello, challenge, proof, welcome } = conversation()
  return { hello: toHex(hello), challenge: toHex(challenge), proof: toHex(proof), welcome: toHex(welcome) }
}

export function handshakeVectors(): Vector {
  const signatures = transcripts()
  return {
    about:
      'Handshake. `text` is the JSON of a message (ASCII), on the wire part(text), for proof and welcome followed by 64 bytes of signature. `fields`: what it says. `conversation`: the four messages of pm (I) and coder (R) as sent, hex. `transcripts`: what is signed for messages 3 and 4. `decisions`: how each side judges each message, in a conversation like that one.',
    conversation: wire(),
    accepted: messages(),
    spellings: spellings(),
    refused: handshakeFaults(shown(helloOf('pm')), { ...shown(helloOf('coder')), chosen: CHOSEN }, PROOF, WELCOME),
    refusals: refusals(),
    transcripts: signatures.accepted,
    refused_transcripts: signatures.refused,
    decisions: decisions(),
  }
}
