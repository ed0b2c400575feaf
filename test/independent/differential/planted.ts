import {
  decodeHeader,
  decodePayload,
  isHermesError,
  type JsonValue,
  leafOf,
  utf8,
  verifyEnvelope,
  verifyHops,
  verifyPayload,
} from '@hermes-peer/protocol'
import type { Steps } from './implementation.ts'
import type { Place } from './plan.ts'

/** What is left of a check when a refusal with these words is overlooked. */
function overlook<A extends unknown[], R>(check: (...args: A) => R, words: string): (...args: A) => R {
  return (...args) => {
    try {
      return check(...args)
    } catch (error) {
      if (isHermesError(error) && error.message.includes(words)) return undefined as R
      throw error
    }
  }
}

const parsed = (bytes: Uint8Array): object => JSON.parse(Buffer.from(bytes).toString()) as object

/** A header is read as JSON first, so that what is strict sees its re-serialisation only. */
const lenient: Steps['decodeHeader'] = (bytes) => {
  try {
    return decodeHeader(utf8(JSON.stringify(parsed(bytes))))
  } catch (error) {
    if (error instanceof SyntaxError) return decodeHeader(bytes)
    throw error
  }
}

function lenientJson(bytes: Uint8Array, refusal: unknown): JsonValue {
  try {
    return JSON.parse(Buffer.from(bytes).toString()) as JsonValue
  } catch {
    throw refusal
  }
}

/** Faults that somebody could build in, and the place of a change that shows them. */
export const PLANTED: Record<string, Partial<Steps> & { place: Place }> = {
  'a header decoder that accepts duplicate keys': { place: 'spelling', decodeHeader: lenient },
  'a header decoder that ignores unknown fields': {
    place: 'fields',
    decodeHeader: (bytes) => {
      const text = Buffer.from(bytes).toString('latin1')
      return { ...decodeHeader(utf8(text.replace('"1.0"', '"1.1"'))), version: '1.0' }
    },
  },
  'a signature that is not checked': { place: 'signature', verifyEnvelope: (frame) => leafOf(frame.header) },
  'a proof that is not hashed up to the root': {
    place: 'signature',
    verifyEnvelope: (frame, key) => (frame.tag === 1 ? leafOf(frame.header) : verifyEnvelope(frame, key)),
  },
  'a payload of which only the size is checked': {
    place: 'binding',
    verifyPayload: overlook(verifyPayload, 'does not have the hash'),
  },
  'a payload parser that is not strict': {
    place: 'payload',
    decodePayload: (type, bytes) => {
      try {
        return decodePayload(type, bytes)
      } catch (error) {
        if (type === 'application/msgpack') throw error
        return lenientJson(bytes, error)
      }
    },
  },
  'a hop whose previous is not checked': {
    place: 'hops',
    verifyHops: overlook(verifyHops, 'does not follow from the one before'),
  },
  'a hop whose signature is not checked': {
    place: 'hops',
    verifyHops: overlook(verifyHops, 'is not signed by its forwarder'),
  },
  'a last hop that may lead anywhere': {
    place: 'hops',
    verifyHops: overlook(verifyHops, 'was meant for another agent'),
  },
  'hops that are not counted': { place: 'fields', verifyHops: overlook(verifyHops, 'hops taken') },
}
