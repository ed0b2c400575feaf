import type { HermesError } from '@hermes-peer/protocol'
import type { Clock } from '../../src/clock.ts'
import type { Link } from '../../src/link/link.ts'
import type { Links } from '../../src/link/links.ts'

/** What the keeper knows of a link, and what it has done to it. */
export interface FakeLink extends Link {
  heardAt: number
  receiptDue: boolean
  stalledAt: number | undefined
  readonly receipts: number
  readonly destroyed: HermesError | undefined
}

export function fakeLink(clock: Clock, agentId = 'other'): FakeLink {
  const link = {
    id: `link of ${agentId}`,
    remote: { agentId },
    openedAt: clock.monotonic(),
    heardAt: clock.monotonic(),
    probes: 0,
    probedAt: 0,
    receiptDue: false,
    stalledAt: undefined,
    receipts: 0,
    destroyed: undefined as HermesError | undefined,
    forgiveSilence() {
      link.heardAt = clock.monotonic()
      link.probes = 0
    },
    sentReceipt() {
      link.receipts++
      link.receiptDue = false
    },
    destroy(reason: HermesError) {
      link.destroyed = reason
    },
  }
  return link as unknown as FakeLink
}

export function linksOf(...all: FakeLink[]): Links {
  return { all: () => all.filter(({ destroyed }) => !destroyed), relieve: () => undefined } as unknown as Links
}
