import type { Timeline } from '../clock/timeline.ts'

/** Who provides what, as far as one peer has been told. */
export interface ProviderRecords {
  put(cid: string, provider: Provider): void
  remove(cid: string, peerId: string): void
  /** Those whose time is not over, oldest announcement first. */
  get(cid: string): readonly Provider[]
}

export interface Provider {
  readonly peerId: string
  readonly addresses: readonly string[]
  /** On the timeline, ms. */
  readonly expires: number
}

/** Bounds of one peer's records; the oldest go first. */
const MAX_CIDS = 10_000
const MAX_PROVIDERS = 1_000

export function createRecords(timeline: Timeline): ProviderRecords {
  const byCid = new Map<string, Map<string, Provider>>()
  return {
    put(cid, provider) {
      const providers = byCid.get(cid) ?? new Map<string, Provider>()
      providers.delete(provider.peerId)
      providers.set(provider.peerId, provider)
      dropOldest(providers, MAX_PROVIDERS)
      byCid.delete(cid)
      byCid.set(cid, providers)
      dropOldest(byCid, MAX_CIDS)
    },
    remove(cid, peerId) {
      byCid.get(cid)?.delete(peerId)
    },
    get(cid) {
      const providers = byCid.get(cid)
      if (!providers) return []
      for (const { peerId, expires } of providers.values()) if (expires <= timeline.now()) providers.delete(peerId)
      if (providers.size === 0) byCid.delete(cid)
      return [...providers.values()]
    },
  }
}

function dropOldest(map: Map<string, unknown>, most: number): void {
  for (const key of map.keys()) {
    if (map.size <= most) return
    map.delete(key)
  }
}
