/** Each way in which a memory world can fail. */
export const FAULT_KINDS = [
  'cut',
  'delay',
  'halfOpen',
  'partition',
  'crash',
  'stall',
  'gossipLost',
  'gossipDuplicated',
  'gossipReordered',
] as const

export type FaultKind = (typeof FAULT_KINDS)[number]

/** How often each fault has really changed what happened on a living connection. */
export interface Hits {
  count(kind: FaultKind): void
  counts(): Readonly<Record<FaultKind, number>>
}

export function createHits(): Hits {
  const counts = Object.fromEntries(FAULT_KINDS.map((kind) => [kind, 0])) as Record<FaultKind, number>
  return {
    count: (kind) => {
      counts[kind] += 1
    },
    counts: () => ({ ...counts }),
  }
}
