/** An agent request whose JSON is `size` bytes (default 1,024). */
export function envelope(i?: number, size?: number): import('../../src/peers/peer.ts').Envelope
/** A piece of a stream whose JSON is 1,024 bytes. */
export function frame(i: number): import('../../src/peers/peer.ts').Frame
/** Text of that many bytes. */
export function bigText(bytes: number): string
