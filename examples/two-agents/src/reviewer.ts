// reviewer.ts
import { createPeer, stopOnSignals } from 'hermes-peer'
import { codeReview } from './contracts.ts'

const reviewer = await createPeer({ agentId: 'reviewer' })
  .provide(codeReview, async ({ source }, ctx) => {
    if (source.length > 1e6) throw ctx.error('TOO_LARGE', { max_bytes: 1e6 })
    const lines = source.split('\n')
    return {
      findings: lines.flatMap((text, i) =>
        text.includes('any') ? [{ line: i + 1, rule: 'no-any', severity: 'warning' as const }] : [],
      ),
    }
  })
  .start()

stopOnSignals(reviewer) // Ctrl-C or SIGTERM: refuses new work, lets what runs end, then exits
