import { randomBytes } from 'node:crypto'
import { createConnection, createServer, type Socket } from 'node:net'
import type { Actor } from './actors.ts'
import { eventually } from './eventually.ts'
import {
  CHOSEN,
  type Falsify,
  type HandHandshake,
  handHandshake,
  helloOf,
  type Json,
  proofOf,
} from './raw-handshake.ts'
import type { RawPeer } from './raw-peer.ts'
import type { RawStream } from './raw-stream.ts'
import { type Verdict, verdictOf } from './verdict.ts'
import type { Victim } from './victim.ts'

/** Who attacks whom. The attacker's transport key is that of `self`, which the victim admits under that name. */
export interface Attack {
  victim: Victim
  raw: RawPeer
  self: Actor
  /** Somebody else whom the victim admits. */
  other: Actor
}

const initiating = ({ raw, self, victim }: Attack, stream: RawStream) =>
  handHandshake(stream, self, { initiator: raw.peerId, responder: victim.self.peerId })
const responding = ({ raw, self, victim }: Attack, stream: RawStream) =>
  handHandshake(stream, self, { initiator: victim.self.peerId, responder: raw.peerId })

/** The attacker dials and says `hello`; nothing else. */
export async function sayHello(attack: Attack, hello: Json): Promise<Verdict> {
  attack.victim.mark()
  const stream = await attack.raw.open(attack.victim.address)
  initiating(attack, stream).send(hello)
  return verdictOf(attack.victim, stream)
}

/** A whole handshake of the attacker as itself, with a proof that is false in one respect. */
export async function falseProof(attack: Attack, falsify: Falsify, body: Json = {}): Promise<Verdict> {
  attack.victim.mark()
  const stream = await attack.raw.open(attack.victim.address)
  const hand = initiating(attack, stream)
  hand.send(helloOf(attack.self))
  await hand.read()
  hand.sendSigned('proof', proofOf(body), falsify)
  return verdictOf(attack.victim, stream)
}

/** The victim dials; `respond` plays the other side. */
export async function whenDialled(
  attack: Attack,
  respond: (hand: HandHandshake, hello: Json) => void | Promise<void>,
): Promise<Verdict> {
  const { victim, raw } = attack
  victim.mark()
  const connecting = victim.peer.connect(raw.address).catch(() => undefined)
  const stream = await raw.accept()
  const hand = responding(attack, stream)
  await respond(hand, await hand.read())
  const verdict = await verdictOf(victim, stream)
  // A dial that is still under way would be joined by the next one.
  await connecting
  return verdict
}

export const challengeOf = (self: Actor, more: Json = {}): Json => ({ ...helloOf(self), chosen: CHOSEN, ...more })
export const welcomeOf = (more: Json = {}): Json => ({ ...proofOf(), link_id: randomBytes(8).toString('hex'), ...more })

/** Two handshakes at once, one in each direction, each with the proof that was made for the other. */
export async function interleave(attack: Attack): Promise<{ linked: number; codes: string[]; told: unknown[] }> {
  const { victim, raw, self } = attack
  victim.mark()
  const connecting = victim.peer.connect(raw.address).catch(() => undefined)
  const back = responding(attack, await raw.accept())
  const hello = await back.read()
  const out = initiating(attack, await raw.open(victim.address))
  // The nonce that the victim chose in one direction is what it gets in the other.
  out.send(helloOf(self, { nonce: hello.nonce }))
  const challenge = await out.read()
  back.send(challengeOf(self, { nonce: challenge.nonce }))
  const { raw: proof } = await back.readSigned()
  out.stream.send(proof)
  back.sendSigned('welcome', welcomeOf(), {
    bound: (binding) => ({ ...binding, messages: [...out.binding.messages, binding.messages.at(-1) as Uint8Array] }),
  })
  await eventually(() => victim.of('link.up').length + victim.of('handshake.refused').length === 2, 'both ends')
  const told = await Promise.all([out, back].map(async ({ stream }) => (await stream.told())?.error_code))
  for (const { stream } of [out, back]) stream.close()
  await connecting
  return { linked: victim.of('link.up').length, codes: victim.of('handshake.refused').map(({ code }) => code), told }
}

/** A proof that was made for the challenge of an earlier handshake, which was given up. */
export async function staleChallenge(attack: Attack): Promise<Verdict> {
  const { victim, raw, self } = attack
  victim.mark()
  const first = initiating(attack, await raw.open(victim.address))
  first.send(helloOf(self))
  await first.read()
  first.stream.reset()
  await victim.until('handshake.refused')
  victim.mark()
  const second = initiating(attack, await raw.open(victim.address))
  second.send(first.binding.messages[0]?.subarray(2) as Uint8Array)
  await second.read()
  second.sendSigned('proof', proofOf(), {
    bound: (binding) => ({ ...binding, messages: [...first.binding.messages, binding.messages.at(-1) as Uint8Array] }),
  })
  return verdictOf(victim, second.stream)
}

/** The man in the middle: what `from` says to the attacker is passed on to the victim byte by byte, and back. */
export async function relay(attack: Attack, from: Victim): Promise<{ atVictim: Verdict; atOther: Verdict }> {
  const { victim, raw } = attack
  victim.mark()
  from.mark()
  const connecting = from.peer.connect(raw.address)
  connecting.catch(() => undefined)
  const inner = await raw.accept()
  const outer = await raw.open(victim.address)
  inner.pipeTo(outer)
  outer.pipeTo(inner)
  const [atVictim, atOther] = await Promise.all([ended(victim), ended(from)])
  return { atVictim, atOther }
}

async function ended(victim: Victim): Promise<Verdict> {
  const end = await eventually(
    () => victim.of('link.up')[0] ?? victim.of('handshake.refused')[0],
    'an end of the handshake',
  )
  return end.type === 'link.up' ? { linked: true } : { linked: false, code: end.code }
}

/** A plain TCP relay in front of an address; dials through it come from `localAddress`. */
export async function tcpRelay(
  address: string,
  localAddress?: string,
): Promise<{ address: string; stop(): Promise<void> }> {
  const port = Number(address.split('/')[4])
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    const on = createConnection({ host: '127.0.0.1', port, ...(localAddress === undefined ? {} : { localAddress }) })
    for (const one of [socket, on]) {
      sockets.add(one)
      one.on('error', () => {
        socket.destroy()
        on.destroy()
      })
      one.on('close', () => sockets.delete(one))
    }
    socket.pipe(on)
    on.pipe(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const bound = server.address() as { port: number }
  return {
    address: `/ip4/127.0.0.1/tcp/${bound.port}`,
    stop: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
