import type { Balance } from '../api.ts'

/** Counts calls so that `calls = succeeded + failed + inFlight` holds at every moment. */
export interface Ledger {
  begin(): void
  end(succeeded: boolean): void
  failover(): void
  read(): Balance
}

export function createLedger(): Ledger {
  let calls = 0
  let succeeded = 0
  let failed = 0
  let failovers = 0
  return {
    begin: () => {
      calls++
    },
    end: (well) => {
      if (well) succeeded++
      else failed++
    },
    failover: () => {
      failovers++
    },
    read: () => ({ calls, succeeded, failed, inFlight: calls - succeeded - failed, failovers }),
  }
}
