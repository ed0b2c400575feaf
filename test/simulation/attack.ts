import type { SeededRandom } from '@hermes-peer/testkit'

interface SeenFrame {
  from: string
  to: string
  frame: Uint8Array
  deliver: (frame: Uint8Array) => void
  draw: SeededRandom
}

/** Somebody in the path who repeats what was sent before, and changes bits of it. */
export function createAttack() {
  const captured = new Map<string, Uint8Array[]>()
  const forged = new Set<string>()
  let replayed = 0
  return {
    forged,
    replayed: () => replayed,
    onFrame({ from, to, frame, deliver, draw }: SeenFrame): void {
      const key = `${from} ${to}`
      const kept = captured.get(key) ?? []
      captured.set(key, kept)
      if (kept.length < 50) kept.push(Uint8Array.from(frame))
      if (kept.length > 1 && draw.chance(0.02)) {
        replayed++
        deliver(draw.pick(kept))
      }
      if (draw.chance(0.02)) {
        // One character of the message id: a whole new piece of work, if anybody believed it.
        const changed = Uint8Array.from(frame)
        const text = Buffer.from(changed.buffer).toString('latin1')
        const at = text.indexOf('"msg_') + 6
        if (at > 6) {
          changed[at] = changed[at] === 0x41 ? 0x42 : 0x41
          forged.add(
            Buffer.from(changed.buffer)
              .toString('latin1')
              .slice(at - 5, at + 15),
          )
          deliver(changed)
        }
      }
    },
  }
}
