import type { Effects } from '@hermes-peer/protocol'

const STRENGTH: Readonly<Record<Effects, number>> = { none: 0, idempotent: 1, once: 2 }

/** What a repeated run would do, by whichever of the two sides says the stricter thing; `once` where neither says. */
export function stricter(ours: Effects | undefined, theirs: Effects | undefined): Effects {
  const given = [ours, theirs].filter((effects): effects is Effects => effects !== undefined)
  if (given.length === 0) return 'once'
  return given.reduce((a, b) => (STRENGTH[a] >= STRENGTH[b] ? a : b))
}
