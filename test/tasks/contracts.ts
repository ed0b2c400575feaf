import { capability } from 'hermes-peer'
import { z } from 'zod'

/** Work that asks before it goes on, and tells what it has so far. */
export const repair = capability('repair', {
  description: 'Plans a repair of a text, asks whether to go on, and applies it.',
  input: z.object({ source: z.string() }),
  output: z.object({ source: z.string() }),
  partial: z.object({ plan: z.string() }),
  asks: { question: z.object({ plan: z.string() }), answer: z.object({ approved: z.boolean() }) },
  errors: { REFUSED: z.object({ plan: z.string() }) },
  effects: 'none',
})

export const index = capability('index', {
  description: 'Indexes a folder; may be repeated.',
  input: z.object({ folder: z.string() }),
  output: z.object({ files: z.number() }),
  effects: 'none',
})

/** What must not be done twice. */
export const pay = capability('pay', {
  description: 'Pays an invoice.',
  input: z.object({ invoice: z.string() }),
  output: z.object({ paid: z.boolean() }),
  effects: 'once',
})

/** The same, one after the other. */
export const payInTurn = capability('pay-in-turn', {
  description: 'Pays invoices one after the other.',
  input: z.object({ invoice: z.string() }),
  output: z.object({ paid: z.string() }),
  effects: 'once',
  constraints: { maxConcurrency: 1 },
})
