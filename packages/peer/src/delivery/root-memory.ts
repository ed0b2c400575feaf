import type { RootMemory } from '@hermes-peer/protocol'

/** Verified batch roots kept at most; the oldest goes first. */
const MOST = 64

export function createRootMemory(): RootMemory {
  const roots = new Set<string>()
  return {
    has: (root) => roots.has(root),
    add(root) {
      roots.add(root)
      if (roots.size > MOST) roots.delete(roots.values().next().value as string)
    },
  }
}
