import type { Clock } from '../clock.ts'

const BUCKETS = 15
const BUCKET_MS = 60_000

/** Share of served work that ended well in the last 15 minutes, in buckets of one minute. */
export interface SuccessRate {
  count(well: boolean): void
  /** 0..1; 1 when nothing has ended. */
  read(): number
}

export function createSuccessRate({ clock }: { clock: Clock }): SuccessRate {
  const buckets = Array.from({ length: BUCKETS }, () => ({ minute: -1, all: 0, well: 0 }))
  const minuteNow = () => Math.floor(clock.monotonic() / BUCKET_MS)
  return {
    count(well) {
      const minute = minuteNow()
      const bucket = buckets[minute % BUCKETS] as (typeof buckets)[number]
      if (bucket.minute !== minute) Object.assign(bucket, { minute, all: 0, well: 0 })
      bucket.all++
      if (well) bucket.well++
    },
    read() {
      const oldest = minuteNow() - BUCKETS + 1
      let all = 0
      let well = 0
      for (const bucket of buckets) {
        if (bucket.minute < oldest) continue
        all += bucket.all
        well += bucket.well
      }
      return all === 0 ? 1 : well / all
    },
  }
}
