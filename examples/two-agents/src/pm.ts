// pm.ts
import { createPeer, isError } from 'hermes-peer'
import { codeReview } from './contracts.ts'

await using pm = await createPeer({ agentId: 'pm' }).start()
try {
  const { findings } = await pm.call(codeReview, { file: 'cart.ts', source: 'const cart: any = {}' })
  console.log(findings) // [ { line: 1, rule: 'no-any', severity: 'warning' } ]
} catch (error) {
  if (isError(error, codeReview, 'TOO_LARGE')) console.log(`split it: at most ${error.data.max_bytes} bytes`)
  else throw error
}
