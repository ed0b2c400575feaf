/** A bucket of retries, refilled by calls: however many callers fail, retries stay a small share of the traffic. */
export interface RetryBudget {
  /** A call begins. */
  credit(): void
  /** Takes one retry; false when none is left. */
  take(): boolean
}

export function createRetryBudget({ size, refill }: { size: number; refill: number }): RetryBudget {
  let tokens = size
  return {
    credit() {
      tokens = Math.min(size, tokens + refill)
    },
    take() {
      if (tokens < 1) return false
      tokens -= 1
      return true
    },
  }
}
