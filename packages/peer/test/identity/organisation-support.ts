import {
  type InstanceCertificate,
  type OrganisationCertificate,
  type SignedDocument,
  signCertificate,
  type TeamCertificate,
} from '@hermes-peer/protocol'
import { createNotes, type Notes } from '../../src/identity/notes.ts'
import { createMemoryJournal } from '../../src/journal/memory-journal.ts'
import { keyNamed } from './support.ts'

export const ORGANISATION = keyNamed('acme')
export const HOUR = 3_600_000

type Changes<C> = Partial<C> & { by?: string }

const LIFE = { network: 'default', serial: 1, not_before: 0, not_after: 4_000_000_000_000 }

/** What the organisation (or the team of that key) says of an agent, whose key is named like it. */
export function certificateOf(agentId: string, changes: Changes<OrganisationCertificate> = {}): SignedDocument {
  const { by = 'acme', ...rest } = changes
  return signCertificate(
    {
      kind: 'organisation',
      agent_id: agentId,
      ...LIFE,
      agent_key: keyNamed(agentId).publicKey.raw,
      team: 'ops',
      roles: ['reader'],
      ...rest,
    },
    keyNamed(by),
  )
}

/** A team `ops` under the prefix `ops`, whose key is named `ops key`. */
export function teamCertificate(changes: Changes<TeamCertificate> = {}): SignedDocument {
  const { by = 'acme', ...rest } = changes
  return signCertificate(
    {
      kind: 'team',
      ...LIFE,
      team: 'ops',
      team_key: keyNamed('ops key').publicKey.raw,
      prefix: 'ops',
      roles: ['reader'],
      ...rest,
    },
    keyNamed(by),
  )
}

/** The agent's word for an instance key. */
export function instanceOf(agentId: string, key: string, changes: Changes<InstanceCertificate> = {}): SignedDocument {
  const { by = agentId, ...rest } = changes
  return signCertificate(
    { kind: 'instance', agent_id: agentId, ...LIFE, instance_key: keyNamed(key).publicKey.raw, ...rest },
    keyNamed(by),
  )
}

/** Notes in a journal in memory, which a second life finds again; `stored` waits until all of them are there. */
export async function notesInMemory(): Promise<{ notes: Notes; told: string[]; stored: () => Promise<void> }> {
  const told: string[] = []
  const journal = createMemoryJournal()
  await journal.open()
  return {
    notes: createNotes({ journal, report: (text) => told.push(text) }),
    told,
    stored: () => journal.commit([{ table: 'marks', key: 'last', value: new Uint8Array() }]),
  }
}
