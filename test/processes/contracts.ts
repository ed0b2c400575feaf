import { capability } from 'hermes-peer'
import { z } from 'zod'

const input = z.object({ ms: z.number(), id: z.string() })
const output = z.object({ by: z.string(), pid: z.number(), id: z.string() })

export const SAFE = capability('slow_lookup', {
  description: 'Waits, then tells who waited.',
  input,
  output,
  effects: 'none',
})
export const UNSAFE = capability('slow_payment', {
  description: 'Waits, then tells who paid.',
  input,
  output,
  effects: 'once',
})

/** What runs so many times at once. */
export const placesOf = (maxConcurrency?: number) =>
  capability('shared_work', {
    description: 'Waits, then tells who waited, and how many it was waiting for at once.',
    input: z.object({ ms: z.number() }),
    output: z.object({ by: z.string(), running: z.number() }),
    effects: 'none',
    ...(maxConcurrency === undefined ? {} : { constraints: { maxConcurrency } }),
  })
