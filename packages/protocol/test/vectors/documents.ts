import {
  type CapabilityEntry,
  type Manifest,
  manifestDigest,
  type Presence,
  type Revocation,
  type SigningKey,
  signCertificate,
  signEndorsement,
  signManifest,
  signPresence,
  signRevocation,
  toBase64url,
  toFile,
  toHex,
} from '../../src/index.ts'
import { documentFaults } from './document-faults.ts'
import {
  BY_INSTANCE,
  ENDORSEMENT,
  fieldsOf,
  INSTANCE,
  MANIFEST,
  ORGANISATION,
  PRESENCE,
  REVOCATION,
  TEAM,
} from './document-samples.ts'
import { KEYS, type Name, NOW, type Vector } from './scene.ts'

function written(
  name: string,
  kind: string,
  value: object,
  signer: Name,
  sign: (key: SigningKey) => Uint8Array,
): Vector {
  const bytes = sign(KEYS[signer])
  return { name, kind, signer, value: fieldsOf(value), bytes: toHex(bytes), file: toFile(bytes) }
}

function accepted(): Vector[] {
  const manifest = (name: string, value: Manifest): Vector => ({
    ...written(name, 'manifest', value, 'coder', (key) => signManifest(value, key)),
    digest: manifestDigest(signManifest(value, KEYS.coder)),
  })
  const presence = (name: string, value: Presence) =>
    written(name, 'presence', value, 'coder', (key) => signPresence(value, key))
  const leaving: Presence = {
    ...PRESENCE,
    state: 'leaving',
    load: 100,
    success_rate_15m: 1,
    addresses: [],
    capabilities: [],
  }
  const revocation = (name: string, value: Revocation) =>
    written(name, 'revocation', value, 'coder', (key) => signRevocation(value, key))
  return [
    written('manifest of an instance', 'manifest', { ...MANIFEST, certificates: BY_INSTANCE }, 'tester-a', (key) =>
      signManifest({ ...MANIFEST, certificates: BY_INSTANCE }, key),
    ),
    written('presence of an instance', 'presence', { ...PRESENCE, certificates: BY_INSTANCE }, 'tester-a', (key) =>
      signPresence({ ...PRESENCE, certificates: BY_INSTANCE }, key),
    ),
    revocation('revocation', REVOCATION),
    revocation('revocation with certificates', { ...REVOCATION, certificates: BY_INSTANCE }),
    {
      ...written('certificate of a team', 'certificate', TEAM, 'organisation', (key) => signCertificate(TEAM, key)),
      now: NOW,
    },
    manifest('manifest', MANIFEST),
    manifest('manifest without capabilities', { ...MANIFEST, capabilities: [], description: '什么都不做' }),
    manifest('manifest that is endorsed and says more of its capability', {
      ...MANIFEST,
      capabilities: [
        {
          ...(MANIFEST.capabilities[1] as CapabilityEntry),
          partial_schema: {},
          question_schema: { type: 'string' },
          answer_schema: { type: 'boolean' },
          constraints: { p99_ms: 1200 },
        },
      ],
      endorsements: [toBase64url(signEndorsement(ENDORSEMENT, KEYS.pm))],
    }),
    presence('presence', PRESENCE),
    presence('presence, draining', { ...PRESENCE, state: 'draining', load: 0, success_rate_15m: 0, queue_depth: 0 }),
    presence('presence, leaving', leaving),
    {
      ...written('certificate of an instance', 'certificate', INSTANCE, 'coder', (key) =>
        signCertificate(INSTANCE, key),
      ),
      now: NOW,
    },
    {
      ...written('certificate of an organisation', 'certificate', ORGANISATION, 'organisation', (key) =>
        signCertificate(ORGANISATION, key),
      ),
      now: NOW,
    },
    written('endorsement', 'endorsement', ENDORSEMENT, 'pm', (key) => signEndorsement(ENDORSEMENT, key)),
  ]
}

export function documentVectors(): Vector {
  return {
    about:
      'Signed documents: part(JSON) ‖ signature. `value` is what the document says (in a presence `success_rate_15m` stands in thousandths on the wire), `bytes` the whole in hex, `file` its form in a file. A certificate is judged at `now`. `digest` is what the handshake tells of a manifest.',
    accepted: accepted(),
    refused: documentFaults(),
  }
}
