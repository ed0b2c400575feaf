import { createHash } from 'node:crypto'
import { type CapabilityEntry, signingKey } from '@hermes-peer/protocol'
import { type Entry, newEntry } from '../../src/directory/entry.ts'
import type { Facts } from '../../src/routing/facts.ts'
import type { Measured } from '../../src/routing/measure.ts'
import type { Scored } from '../../src/routing/rank.ts'

export interface Offered {
  name: string
  labels?: CapabilityEntry['labels']
  input?: unknown
  costLevel?: number
  places?: number
  p99Ms?: number
  description?: string
  negatives?: readonly string[]
  effects?: CapabilityEntry['effects']
}

export function capabilityEntry({
  name,
  labels = {},
  input = {},
  costLevel,
  places,
  p99Ms,
  description = name,
  negatives = [],
  effects = 'none',
}: Offered): CapabilityEntry {
  return {
    name,
    description,
    call_type: 'request',
    effects,
    input_schema: input,
    output_schema: {},
    errors: {},
    labels,
    constraints: {
      ...(costLevel === undefined ? {} : { cost_level: costLevel }),
      ...(places === undefined ? {} : { max_concurrency: places }),
      ...(p99Ms === undefined ? {} : { p99_ms: p99Ms }),
    },
    negative_capabilities: negatives,
  }
}

/** What the directory knows of an agent; with its manifest when `offers` are given as objects. */
export function entry(
  agentId: string,
  more: Partial<Omit<Entry, 'manifest'>> & { offers?: readonly Offered[] } = {},
): Entry {
  const { offers, ...rest } = more
  const key = signingKey(new Uint8Array(createHash('sha256').update(agentId).digest())).publicKey
  const made = newEntry({ agentId, agentKey: key, signer: key, instance: undefined, issued: [] }, 0)
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

/** What a choice knows of an agent about which all is well. */
export function facts(
  agentId: string,
  more: Partial<Omit<Facts, 'measured'>> & { measured?: Partial<Measured> } = {},
): Facts {
  const { measured, ...rest } = more
  return {
    agentId,
    capability: 'work',
    self: false,
    status: 'online',
    heardAt: 0,
    offers: 'manifest',
    described: true,
    labels: {},
    breaker: { state: 'closed' },
    load: 0,
    reportedSuccess: 1,
    affine: false,
    bound: false,
    ...rest,
    measured: { calls: 100, success: 1, p50Ms: 50, inFlight: 0, ...measured },
  }
}

export function scored(
  agentId: string,
  score: number,
  more: { inFlight?: number; measured?: number; cost?: number; places?: number; probe?: boolean } = {},
): Scored {
  const { inFlight = 0, measured = 100, cost, places, probe } = more
  return {
    score,
    facts: facts(agentId, {
      measured: { calls: measured, inFlight },
      ...(cost === undefined ? {} : { cost }),
      ...(places === undefined ? {} : { places }),
      ...(probe ? { breaker: { state: 'half-open', because: 'it failed', probing: false } } : {}),
    }),
  }
}
