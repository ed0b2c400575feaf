import { concat, fromBase64url, part, toBase64url } from '../bytes/parts.ts'
import { Reader } from '../bytes/reader.ts'
import { partInDomain, type SignedThing } from '../crypto/domains.ts'
import type { PublicKey, SigningKey } from '../crypto/keys.ts'
import { HermesError } from '../errors/hermes-error.ts'
import { decodeJson, encodeJson } from '../payload/json.ts'

/** A signed document as it travels: part(JSON bytes as signed) ‖ signature(64). Never re-encoded. */
export type SignedDocument = Uint8Array

export function signDocument(what: SignedThing, value: unknown, key: SigningKey): SignedDocument {
  const body = encodeJson(value)
  return concat([part(body), key.sign(partInDomain(what, body))])
}

export interface OpenedDocument {
  /** The JSON bytes as signed. */
  readonly body: Uint8Array
  readonly signature: Uint8Array
  readonly value: unknown
}

/** Reads a document without trusting it. Throws `LIMIT_EXCEEDED`, `MALFORMED`, `INVALID_PAYLOAD`. */
export function openDocument(bytes: Uint8Array, limit: number, what: string): OpenedDocument {
  const reader = new Reader(bytes)
  const body = reader.part(limit, what)
  const signature = reader.take(64, 'the signature')
  reader.end('the signature')
  return { body, signature, value: decodeJson(body) }
}

/** Throws `BAD_SIGNATURE` that names the document. */
export function verifyDocument(what: SignedThing, document: OpenedDocument, key: PublicKey): void {
  if (!key.verify(partInDomain(what, document.body), document.signature)) {
    throw new HermesError('BAD_SIGNATURE', { message: `the signature of the ${what} does not hold` })
  }
}

/** The form of a signed document in a file. */
export interface DocumentFile {
  document: string
  signature: string
}

export function toFile(bytes: SignedDocument): DocumentFile {
  const reader = new Reader(bytes)
  const body = reader.part(bytes.length, 'the document')
  return { document: toBase64url(body), signature: toBase64url(reader.take(64, 'the signature')) }
}

/** Throws `MALFORMED`. */
export function fromFile(file: unknown): SignedDocument {
  const { document, signature } = (typeof file === 'object' && file !== null ? file : {}) as Partial<DocumentFile>
  const body = typeof document === 'string' ? fromBase64url(document) : undefined
  const proof = typeof signature === 'string' ? fromBase64url(signature) : undefined
  if (!body || proof?.length !== 64) {
    throw new HermesError('MALFORMED', { message: 'the file is not {document, signature} in base64url' })
  }
  return concat([part(body), proof])
}
