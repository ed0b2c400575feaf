import { HermesError } from '@hermes-peer/protocol'

/**
 * `hermes.manifest {agent_id?}`: this agent's own signed manifest, or that of another one which it keeps. Throws
 * `CAPABILITY_NOT_FOUND` when it keeps none, `VALIDATION_ERROR` for another input.
 */
export function manifestFor(
  input: unknown,
  self: string,
  own: { readonly document: Uint8Array },
  kept: { document(agentId: string): Uint8Array | undefined },
): Uint8Array {
  const asked = (input as { agent_id?: unknown } | null)?.agent_id
  if (asked === undefined || asked === self) return own.document
  if (typeof asked !== 'string') {
    throw new HermesError('VALIDATION_ERROR', {
      message: 'hermes.manifest: agent_id must be an agent id',
      details: { path: '/agent_id' },
    })
  }
  const document = kept.document(asked)
  if (document) return document
  throw new HermesError('CAPABILITY_NOT_FOUND', {
    message: `no manifest of ${asked} is kept here`,
    hint: 'Ask that agent itself.',
  })
}
