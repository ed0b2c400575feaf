import { createHash } from 'node:crypto'
import { type CapabilityEntry, peerIdOf, signingKey } from '@hermes-peer/protocol'
import { type Entry, newEntry } from '../../src/directory/entry.ts'
import type { Scored } from '../../src/routing/rank.ts'

export interface Offered {
  name: string
  labels?: CapabilityEntry['labels']
  input?: unknown
  costLevel?: number
  effects?: CapabilityEntry['effects']
}

export function capabilityEntry({
  name,
  labels = {},
  input = {},
  costLevel,
  effects = 'none',
}: Offered): CapabilityEntry {
  return {
    name,
    description: name,
    call_type: 'request',
    effects,
    input_schema: input,
    output_schema: {},
    errors: {},
    labels,
    constraints: costLevel === undefined ? {} : { cost_level: costLevel },
    negative_capabilities: [],
  }
}

/** What the directory knows of an agent; with its manifest when `offers` are given as objects. */
export function entry(
  agentId: string,
  more: Partial<Omit<Entry, 'manifest'>> & { offers?: readonly Offered[] } = {},
): Entry {
  const { offers, ...rest } = more
  const key = signingKey(new Uint8Array(createHash('sha256').update(agentId).digest())).publicKey
  const made = newEntry(agentId, key, peerIdOf(key.raw), 0)
  if (offers) {
    made.manifest = {
      agent_id: agentId,
      key: key.raw,
      network: 'default',
      serial: 1,
      issued_at: 0,
      expires_at: 1,
      description: '',
      capabilities: offers.map(capabilityEntry),
    }
    made.capabilities = offers.map(({ name }) => name)
  }
  return Object.assign(made, { status: 'online' as const, ...rest })
}

export function scored(
  agentId: string,
  score: number,
  more: { inFlight?: number; measured?: number; cost?: number; full?: boolean } = {},
): Scored {
  return {
    inFlight: more.inFlight ?? 0,
    cost: more.cost ?? 3,
    full: more.full ?? false,
    candidate: {
      agentId,
      score,
      usable: true,
      reasons: [],
      load: 0,
      p50Ms: undefined,
      measured: more.measured ?? 100,
      success: 1,
      labels: {},
      status: 'online',
    },
  }
}
