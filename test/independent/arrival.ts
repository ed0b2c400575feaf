import { type Authentic, verifyBytes, verifyFrame } from './envelope.ts'
import { readFrame } from './frame.ts'
import type { Header } from './header.ts'
import type { Arrival } from './hops.ts'
import type { JsonMap } from './json.ts'
import { Refused } from './refused.ts'

const TOLERANCE_MS = 30_000
const STRANGER_TOLERANCE_MS = 600_000
const MAX_LIFE_MS = 86_400_000

/** The agent that an envelope reaches, and the link that it came over. */
export interface Receiver {
  agent_id: string
  network: string
  epoch: number
  now: number
  link: { agent_id: string; epoch: number; next_sequence: number; clock_offset_ms: number }
}

const no = (code: string): never => {
  throw new Refused('arrival', code)
}

/** One frame of a link as its receiver judges it: everything up to the window. */
export function judgeArrival(bytes: Uint8Array, receiver: Receiver, keyOf: Arrival['keyOf']): Authentic[] {
  const { link } = receiver
  const envelopes = verifyBytes(bytes, { self: receiver.agent_id, neighbour: link.agent_id, keyOf })
  for (const { header, hops } of envelopes) {
    if (header.network !== receiver.network) no('WRONG_NETWORK')
    if (hops.length > 0) {
      // Recipient, lives and sequence were the first addressee's to judge; nobody has measured that clock.
      judgeTime(header, receiver.now, STRANGER_TOLERANCE_MS)
      continue
    }
    const { agent_id, via } = header.recipient as JsonMap
    if ((agent_id ?? via) !== receiver.agent_id) no('WRONG_RECIPIENT')
    if (header.epoch !== link.epoch) no('STALE_EPOCH')
    if (header.recipient_epoch !== 0 && header.recipient_epoch !== receiver.epoch) no('PEER_RESTARTED')
    // A heartbeat brings the clock by which all others are judged.
    if (header.message_type !== 'heartbeat') judgeTime(header, receiver.now + link.clock_offset_ms, TOLERANCE_MS)
    if (header.sequence !== 0 && (header.sequence as number) < link.next_sequence) no('STALE_SEQUENCE')
  }
  return envelopes
}

/** A frame of a gossip topic; its sender need not be linked. */
export function judgeBroadcast(
  bytes: Uint8Array,
  topic: string,
  receiver: Receiver,
  keyOf: Arrival['keyOf'],
): Authentic {
  const frame = readFrame(bytes)
  if (frame.tag === 2 || frame.hops.length > 0) throw new Refused('frame', 'a broadcast is one envelope without hops')
  const [envelope] = verifyFrame(frame, { self: receiver.agent_id, neighbour: undefined, keyOf }) as [Authentic]
  const { header } = envelope
  if (header.network !== receiver.network) no('WRONG_NETWORK')
  if ((header.recipient as JsonMap).topic !== topic) no('WRONG_RECIPIENT')
  judgeTime(header, receiver.now, STRANGER_TOLERANCE_MS)
  return envelope
}

/** `now` is the time on the clock of the sender. */
function judgeTime(header: Header, now: number, tolerance: number): void {
  const expires = header.expires_at as number
  if (now > expires + tolerance) no('EXPIRED')
  if (expires > now + MAX_LIFE_MS + tolerance || (header.timestamp as number) > now + tolerance) no('EXPIRY_TOO_FAR')
}
