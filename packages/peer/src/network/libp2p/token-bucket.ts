/** Lets a burst through, and then so many a second. */
export interface Bucket {
  take(now: number): boolean
}

export function createBucket({ burst, perSecond }: { burst: number; perSecond: number }): Bucket {
  let tokens = burst
  let at = 0
  return {
    take(now) {
      tokens = Math.min(burst, tokens + ((now - at) / 1000) * perSecond)
      at = now
      if (tokens < 1) return false
      tokens--
      return true
    },
  }
}
