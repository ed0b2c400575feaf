const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

/** Gives fresh random bytes. */
export type RandomBytes = (length: number) => Uint8Array

/** 16 characters, each drawn evenly: bytes of 248 and more are thrown away, as 248 is the largest multiple of 62 in a byte. */
function letters(random: RandomBytes): string {
  let text = ''
  while (text.length < 16) {
    for (const byte of random(24)) {
      if (byte < 248 && text.length < 16) text += ALPHABET[byte % 62]
    }
  }
  return text
}

export const newMessageId = (random: RandomBytes): string => `msg_${letters(random)}`
export const newCorrelationId = (random: RandomBytes): string => `corr_${letters(random)}`
export const newSessionId = (random: RandomBytes): string => `sess_${letters(random)}`

const hex = (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')

/** W3C trace context: not all zeros. */
export function newTraceId(random: RandomBytes): string {
  const bytes = random(16)
  if (bytes.every((byte) => byte === 0)) bytes[15] = 1
  return hex(bytes)
}

export function newSpanId(random: RandomBytes): string {
  const bytes = random(8)
  if (bytes.every((byte) => byte === 0)) bytes[7] = 1
  return hex(bytes)
}
