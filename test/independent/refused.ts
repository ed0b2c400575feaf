/** What is wrong with the bytes, in the words of the wire text. */
export type Fault =
  | 'frame'
  | 'size'
  | 'tag'
  | 'proof'
  | 'header'
  | 'version'
  | 'depth'
  | 'key'
  | 'sender'
  | 'stranger'
  | 'signature'
  | 'binding'
  | 'payload'
  | 'hop'
  | 'hops'
  | 'ttl'
  | 'handshake'
  | 'document'
  | 'expired'
  | 'network'
  | 'identity'
  | 'rights'
  | 'arrival'

/** The one way in which this decoder says no. */
export class Refused extends Error {
  readonly fault: Fault

  constructor(fault: Fault, why: string) {
    super(`${fault}: ${why}`)
    this.name = 'Refused'
    this.fault = fault
  }
}

export type Verdict<T> = { accepted: true; value: T } | { accepted: false; fault: Fault; why: string }

/** Runs a reading; anything other than a `Refused` is a mistake of this decoder and is thrown on. */
export function judge<T>(read: () => T): Verdict<T> {
  try {
    return { accepted: true, value: read() }
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    return { accepted: false, fault: error.fault, why: error.message }
  }
}
