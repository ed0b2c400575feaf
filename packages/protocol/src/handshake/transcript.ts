import { concat, part, utf8 } from '../bytes/parts.ts'
import { domainOf, inDomain } from '../crypto/domains.ts'
import type { PublicKey, SigningKey } from '../crypto/keys.ts'
import { sha256 } from '../crypto/sha256.ts'

export interface TranscriptContext {
  readonly network: string
  readonly protocol: string
  /** Peer ids as the connection itself knows them. */
  readonly initiator: string
  readonly responder: string
  /** Raw messages so far, each as sent: part(JSON), with its signature where it has one. */
  readonly messages: readonly Uint8Array[]
}

/**
 * SHA-256 over the domain string, network, protocol id, both peer ids with their roles, and the messages, each as part().
 * Binding peer ids and roles is what makes a relayed, reflected or interleaved handshake worthless.
 */
export function transcriptOf({ network, protocol, initiator, responder, messages }: TranscriptContext): Uint8Array {
  const texts = [network, protocol, 'I', initiator, 'R', responder]
  return sha256(concat([part(domainOf('transcript')), ...texts.map((text) => part(utf8(text))), ...messages.map(part)]))
}

/** Signs the transcript for message 3 (`proof`) or 4 (`welcome`). `messages` ends with that message, without its signature. */
export function signTranscript(what: 'proof' | 'welcome', context: TranscriptContext, key: SigningKey): Uint8Array {
  return key.sign(inDomain(what, transcriptOf(context)))
}

export function verifyTranscript(
  what: 'proof' | 'welcome',
  context: TranscriptContext,
  signature: Uint8Array,
  key: PublicKey,
): boolean {
  return key.verify(inDomain(what, transcriptOf(context)), signature)
}
