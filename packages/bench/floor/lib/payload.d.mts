/** An agent request whose JSON is `size` bytes (default 1,024). */
export function envelope(i?: number, size?: number): import('../../src/peers/peer.ts').Envelope
/** Text of that many bytes. */
export function bigText(bytes: number): string
