import { createHash } from 'node:crypto'
import { hex, join, partOf, uvarint } from '../bytes.ts'
import { leafOf, signedBytes } from '../envelope.ts'
import type { Json, JsonMap } from '../json.ts'
import {
  changeBinding,
  changeBytes,
  changeFields,
  changeHops,
  changePayload,
  changeSignature,
  respell,
} from './change.ts'
import { packMsgpack } from './pack.ts'
import type { Change, Place, Plan } from './plan.ts'
import { linkOf, proof, type SignedHop, type Signer, signBatch, signHop } from './sign.ts'

export interface Made {
  bytes: Uint8Array
  self: string
  neighbour: string
}

const NOW = 1_767_225_600_000
const WAY = ['coder', 'tester-a', 'reviewer', 'billing/ledger']

/** Makes the frame of a plan; without changes it is one that must be accepted. */
export function makeFrame(plan: Plan, signers: ReadonlyMap<string, Signer>): Made {
  const at = (place: Place): Change[] => plan.changes.filter((change) => change.place === place)
  const pm = signers.get('pm') as Signer
  const first = makeEnvelope(plan, pm, 0, at)
  const others = Array.from({ length: plan.tag === 0 ? 0 : plan.count - 1 }, (_, index) =>
    makeEnvelope(plan, pm, index + 1, () => []),
  )
  const handedOn = plan.tag !== 2 && plan.type !== 'topic' ? plan.hops : 0
  const hops = at('hops').reduce(
    (chain, change) => changeHops(chain, change, signers),
    makeHops(handedOn, hex(leafOf(first.header)), signers),
  )
  const body = assemble(plan, pm, first, others, at('signature'), signers)
  const tail =
    plan.tag === 2 ? [] : [uvarint(hops.length), ...hops.flatMap(({ json, signature }) => [partOf(json), signature])]
  const bytes = at('bytes').reduce(changeBytes, partOf(join(Uint8Array.of(plan.tag), body, ...tail)))
  return { bytes, self: WAY[handedOn] as string, neighbour: handedOn === 0 ? 'pm' : (WAY[handedOn - 1] as string) }
}

interface Parts {
  header: Uint8Array
  payload: Uint8Array
}

function makeEnvelope(plan: Plan, signer: Signer, index: number, at: (place: Place) => Change[]): Parts {
  const whole = plan.messagePack ? packMsgpack(plan.payload) : Buffer.from(JSON.stringify(plan.payload))
  const payload = at('payload').reduce(
    (bytes: Uint8Array, change) => changePayload(bytes, change, plan.messagePack),
    whole,
  )
  const bound = { payload_sha256: createHash('sha256').update(payload).digest('hex'), payload_size: payload.length }
  const fields = { ...fieldsOf(plan, signer, index), ...at('binding').reduce(changeBinding, bound) }
  const changed = at('fields').reduce(changeFields, fields)
  const header = at('spelling').reduce(respell, Buffer.from(JSON.stringify(changed)))
  return { header, payload }
}

function fieldsOf(plan: Plan, signer: Signer, index: number): JsonMap {
  const { type, messagePack } = plan
  const answers = ['response', 'ack', 'error', 'end'].includes(type)
  const sequenced = ['request', 'stream', 'event', 'acked event', 'submit'].includes(type)
  const message_type = { stream: 'request', 'acked event': 'event', topic: 'event' }[type as string] ?? type
  const life: JsonMap = type === 'submit' || type === 'acked event' ? {} : { recipient_epoch: NOW - 50_000 }
  return {
    version: '1.0',
    network: 'dev-team',
    message_id: `msg_${index.toString(16).padStart(16, '0')}`,
    trace_id: '4bf92f3577b34da6a3ce929d0e0e4736',
    span_id: '00f067aa0ba902b7',
    message_type,
    sender: { agent_id: signer.agent, key: signer.key.fingerprint },
    recipient: type === 'topic' ? { topic: 'builds' } : { agent_id: 'coder' },
    ...(sequenced ? { target_capability: 'fix-test', ...life } : {}),
    ...(type === 'stream' ? { call_type: 'stream' } : sequenced ? { sequence: index + 1 } : {}),
    ...(type === 'submit' ? { call_type: 'task' } : {}),
    ...(type === 'acked event' ? { ack: 'stored' } : {}),
    ...(answers ? { in_reply_to: 'ab'.repeat(32) } : {}),
    epoch: NOW - 60_000,
    timestamp: NOW,
    ...(messagePack ? { content_type: 'application/msgpack' } : {}),
  }
}

/** Everything between the tag and the hops. */
function assemble(
  plan: Plan,
  signer: Signer,
  first: Parts,
  others: Parts[],
  changes: Change[],
  signers: ReadonlyMap<string, Signer>,
): Uint8Array {
  const parts = ({ header, payload }: Parts): Uint8Array => join(partOf(header), partOf(payload))
  const change = (bytes: Uint8Array): Uint8Array =>
    changes.reduce((sum, one) => changeSignature(sum, one, first.header, signers), bytes)
  if (plan.tag === 0) return join(parts(first), change(signer.sign(signedBytes(first.header))))
  const all = [first, ...others]
  const leaves = all.map(({ header }) => leafOf(header))
  if (plan.tag === 2) return join(uvarint(all.length), change(signBatch(signer, leaves)), ...all.map(parts))
  const place = plan.index % all.length
  const turned = [...leaves.slice(1, place + 1), leaves[0] as Uint8Array, ...leaves.slice(place + 1)]
  return join(parts(first), change(proof(signBatch(signer, turned), turned, place)))
}

function makeHops(count: number, leaf: string, signers: ReadonlyMap<string, Signer>): SignedHop[] {
  const hops: SignedHop[] = []
  for (let index = 0; index < count; index += 1) {
    const before = hops.at(-1)
    const hop: JsonMap = {
      forwarder: WAY[index] as Json,
      next: WAY[index + 1] as Json,
      index,
      timestamp: NOW + index,
      budget_ms: 60_000 - index,
      previous: before ? linkOf(before) : leaf,
    }
    hops.push(signHop(signers.get(WAY[index] as string) as Signer, Buffer.from(JSON.stringify(hop))))
  }
  return hops
}
