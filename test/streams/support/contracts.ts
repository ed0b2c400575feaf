import { capability } from 'hermes-peer'
import * as z from 'zod'

export const pages = capability('pages', {
  description: 'Yields pages of 1 KB.',
  input: z.object({ count: z.number() }),
  output: z.object({ made: z.number() }),
  yields: z.string(),
  effects: 'none',
})
export const echo = capability('echo', { description: 'Echoes.', input: z.any(), output: z.any(), effects: 'none' })
/** What the writer has seen since it was last asked. */
export const figures = capability('figures', {
  description: 'Tells how it went, and starts counting anew.',
  input: z.null(),
  output: z.object({
    /** Bytes that the process took at most beyond what it took at the start. */
    growth: z.number(),
    pauses: z.number(),
    made: z.number(),
  }),
  effects: 'none',
})
/** One page with its quotes is 1 KB as sent. */
export const PAGE = 'x'.repeat(1022)
