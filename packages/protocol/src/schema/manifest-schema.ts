import { agentId, capabilityName, integer, name, published, text } from './vocabulary.ts'

const schemaOfSomebody = { type: ['object', 'boolean'] } as const

const capability = {
  type: 'object',
  properties: {
    name: capabilityName,
    description: text(2048),
    call_type: { enum: ['request', 'task', 'stream'] },
    effects: { enum: ['none', 'idempotent', 'once'], description: 'What a repeated run would do.' },
    input_schema: schemaOfSomebody,
    output_schema: schemaOfSomebody,
    partial_schema: schemaOfSomebody,
    yields_schema: schemaOfSomebody,
    question_schema: schemaOfSomebody,
    answer_schema: schemaOfSomebody,
    errors: {
      type: 'object',
      propertyNames: { pattern: '^[A-Z][A-Z0-9_]{0,63}$' },
      additionalProperties: schemaOfSomebody,
      maxProperties: 64,
    },
    labels: {
      type: 'object',
      additionalProperties: { anyOf: [text(256), { type: 'array', items: text(256), maxItems: 64 }] },
      maxProperties: 64,
    },
    constraints: {
      type: 'object',
      properties: { max_concurrency: integer(1), budget_ms: integer(1), cost_level: integer(1, 5), p99_ms: integer(1) },
      maxProperties: 16,
    },
    negative_capabilities: { type: 'array', items: text(256), maxItems: 64 },
  },
  required: [
    'name',
    'description',
    'call_type',
    'effects',
    'input_schema',
    'output_schema',
    'errors',
    'labels',
    'constraints',
    'negative_capabilities',
  ],
} as const

/** The manifest as its JSON was signed. Open: a newer peer may say more. */
export const MANIFEST_SCHEMA = published('manifest', "An agent's signed description of itself", {
  type: 'object',
  properties: {
    agent_id: agentId,
    key: { type: 'string', pattern: '^[A-Za-z0-9_-]{43}$', description: 'Raw Ed25519 agent key, base64url.' },
    certificates: {
      type: 'array',
      items: { type: 'string' },
      maxItems: 3,
      description: 'Signed documents, base64url.',
    },
    network: name,
    serial: integer(0),
    issued_at: integer(0),
    expires_at: integer(0),
    description: text(2048),
    capabilities: { type: 'array', items: capability, maxItems: 256 },
    endorsements: {
      type: 'array',
      items: { type: 'string', pattern: '^[A-Za-z0-9_-]*$', maxLength: 1454 },
      maxItems: 16,
      description: 'What others have signed about this agent, base64url.',
    },
  },
  required: ['agent_id', 'key', 'network', 'serial', 'issued_at', 'expires_at', 'description', 'capabilities'],
} as const)
