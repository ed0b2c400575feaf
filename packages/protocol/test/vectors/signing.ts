import {
  bindPayload,
  domainOf,
  encodeHeader,
  encodePayload,
  type HeaderDraft,
  inDomain,
  leafOf,
  partInDomain,
  SIGNED_THINGS,
  type SigningKey,
  signedBytesOf,
  toHex,
  utf8,
} from '../../src/index.ts'
import { type Envelope, envelopeOf, frameOf, idOf, KEYS, requestDraft, type Vector } from './scene.ts'

function sealed(name: string, draft: HeaderDraft, value: unknown): Vector {
  const envelope = envelopeOf(draft, value)
  return {
    name,
    signer: 'pm',
    value,
    header: Buffer.from(envelope.header).toString('latin1'),
    payload: toHex(envelope.payload),
    m: toHex(envelope.m),
    leaf: envelope.leaf,
    signature: toHex(envelope.signature),
    bytes: toHex(frameOf(envelope)),
  }
}

const named = (name: string, more: Partial<HeaderDraft> = {}) =>
  requestDraft({ message_id: idOf('msg', name), ...more })

function accepted(): Vector[] {
  const numbers = { small: [1e-5, 1e-7, 5e-324], zero: -0, large: 1e21, whole: 1.0 }
  const keys = { '\u20ac': 1, '\ud83d\ude00': 2, '\ufb33': 3, '': 4, '\u0000': null }
  const chinese = { input: { 任务: '修复失败的测试', 备注: '尽快 🙏' } }
  return [
    sealed('plain', named('plain'), { input: {} }),
    sealed('Chinese and emoji', named('chinese'), chinese),
    sealed('Chinese and emoji as MessagePack', named('chinese-2', { content_type: 'application/msgpack' }), chinese),
    sealed('F-03 keys that sort in two ways', named('F-03'), { input: keys }),
    sealed('F-03 keys as MessagePack', named('F-03-2', { content_type: 'application/msgpack' }), { input: keys }),
    sealed('F-04 numbers', named('F-04'), { input: numbers }),
    sealed('F-04 numbers as MessagePack', named('F-04-2', { content_type: 'application/msgpack' }), { input: numbers }),
  ]
}

/** Numbers in spellings that an encoder would not choose: the signature is over the bytes as sent, so each holds. */
function spellings(): Vector[] {
  const texts = ['1.0', '1e0', '10E-1', '0.00001', '-0', '1E21', ' {"input" : "\\u4e2d" } ']
  return texts.map((text) => {
    const payload = utf8(text)
    const draft = { ...named(`spelling ${text}`), ...bindPayload(payload) }
    const header = encodeHeader(draft)
    const envelope = {
      header,
      payload,
      m: signedBytesOf(header),
      leaf: leafOf(header),
      signature: KEYS.pm.sign(signedBytesOf(header)),
    }
    return {
      name: `payload spelled ${text}`,
      signer: 'pm',
      payload: toHex(payload),
      leaf: envelope.leaf,
      bytes: toHex(frameOf(envelope)),
    }
  })
}

function refused(): Vector[] {
  const good = envelopeOf(named('refused'), { input: {} })
  const no = (name: string, code: string, envelope: Envelope): Vector => ({
    name,
    signer: 'pm',
    bytes: toHex(frameOf(envelope)),
    code,
  })
  const signed = (message: Uint8Array, key: SigningKey = KEYS.pm): Envelope => ({
    ...good,
    signature: key.sign(message),
  })
  const flipped = (at: number) => good.signature.map((byte, index) => (index === at ? byte ^ 0x80 : byte))
  const other = encodeHeader(
    requestDraft({ message_id: idOf('msg', 'refused'), priority: 5, ...bindPayload(good.payload) }),
  )
  const respelled = Buffer.from(
    JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(Buffer.from(good.header).toString())).reverse())),
  )
  const longer = encodePayload('application/json', { input: { more: 1 } })
  const samesize = utf8('{"input":[]}')
  return [
    no('a signature with its first bit changed', 'BAD_SIGNATURE', { ...good, signature: flipped(0) }),
    no('a signature with its last bit changed', 'BAD_SIGNATURE', { ...good, signature: flipped(63) }),
    no('no signature: 64 zeros', 'BAD_SIGNATURE', { ...good, signature: new Uint8Array(64) }),
    no('signed by another key', 'BAD_SIGNATURE', signed(good.m, KEYS.stranger)),
    no('signed for another header', 'BAD_SIGNATURE', { ...good, header: other }),
    no('the same header with its keys in another order', 'BAD_SIGNATURE', { ...good, header: respelled }),
    no('signed without the domain', 'BAD_SIGNATURE', signed(good.header)),
    no('signed without the length of the header', 'BAD_SIGNATURE', signed(inDomain('envelope', good.header))),
    no('signed with the payload too', 'BAD_SIGNATURE', signed(Buffer.concat([good.m, good.payload]))),
    no('signed over the leaf', 'BAD_SIGNATURE', signed(Buffer.from(good.leaf, 'hex'))),
    ...SIGNED_THINGS.filter((what) => what !== 'envelope').map((what) =>
      no(`signed as ${what}`, 'BAD_SIGNATURE', signed(partInDomain(what, good.header))),
    ),
    no('a longer payload', 'PAYLOAD_MISMATCH', { ...good, payload: longer }),
    no('no payload', 'PAYLOAD_MISMATCH', { ...good, payload: new Uint8Array(0) }),
    no('another payload of the same size', 'PAYLOAD_MISMATCH', { ...good, payload: samesize }),
  ]
}

export function signingVectors(): Vector {
  return {
    about:
      'One envelope with its own signature (tag 0): `m` is what is signed, `leaf` names the attempt, `bytes` is the frame. `header` is ASCII, all other bytes hex; `value` is the data of the payload. Keys: keys.json.',
    domains: SIGNED_THINGS.map((what) => ({ what, prefix: toHex(Buffer.concat([domainOf(what), Uint8Array.of(0)])) })),
    accepted: accepted(),
    spellings: spellings(),
    refused: refused(),
  }
}
