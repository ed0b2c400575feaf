// contracts.ts: shared by both agents
import { capability } from 'hermes-peer'
import { z } from 'zod'

const Finding = z.object({ line: z.number(), rule: z.string(), severity: z.enum(['note', 'warning', 'error']) })

export const codeReview = capability('code_review', {
  description: 'Reviews one TypeScript file; returns findings with line, rule and severity.',
  input: z.object({ file: z.string(), source: z.string() }),
  output: z.object({ findings: z.array(Finding) }),
  errors: { TOO_LARGE: z.object({ max_bytes: z.number() }) },
  effects: 'none', // none | idempotent | once: what a repeated run would do
})
