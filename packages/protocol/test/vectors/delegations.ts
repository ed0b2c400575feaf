import {
  type Constraints,
  concat,
  type DelegationLink,
  encodeJson,
  judgeConstraints,
  part,
  partInDomain,
  placed,
  type SignedDocument,
  type SignedThing,
  type SigningKey,
  sha256Hex,
  signDelegation,
  toBase64url,
  toHex,
} from '../../src/index.ts'
import { fieldsOf } from './document-samples.ts'
import { KEYS, type Name, NETWORK, NOW, type Vector } from './scene.ts'

const HOUR = 3_600_000
const FIRST: Constraints = { '/amount': { min: 0, max: 1000 }, '/currency': { one_of: ['EUR', 'USD'] } }

export const linkOf = (from: Name, to: Name, more: Partial<DelegationLink> = {}): DelegationLink => ({
  network: NETWORK,
  from,
  key: KEYS[from].publicKey.raw,
  to,
  capabilities: ['pay', 'report@2'],
  constraints: FIRST,
  issued_at: NOW,
  expires_at: NOW + HOUR,
  ...more,
})

/** Signs each link by whom it is from, on top of the one before. */
export function chainOf(links: readonly DelegationLink[]): SignedDocument {
  let document: SignedDocument | undefined
  for (const link of links) document = signDelegation(link, KEYS[link.from as Name], document)
  return document as SignedDocument
}

const CHAIN: readonly Name[] = ['pm', 'coder', 'reviewer', 'tester-a', 'billing/ledger', 'organisation', 'stranger']
const narrower: Constraints = { '/amount': { equals: 5 }, '/currency': { equals: 'EUR' }, '/to': { prefix: '商店/' } }
/** So many links, each like the first, or what is said of it. */
const links = (count: number, more: (index: number) => Partial<DelegationLink> = () => ({})): DelegationLink[] =>
  Array.from({ length: count }, (_, index) => linkOf(CHAIN[index] as Name, CHAIN[index + 1] as Name, more(index)))

function accepted(): Vector[] {
  const yes = (name: string, chain: readonly DelegationLink[]): Vector => {
    const document = chainOf(chain)
    return { name, links: chain.map(fieldsOf), bytes: toHex(document), sha256: sha256Hex(document), now: NOW }
  }
  return [
    yes('one link', links(1)),
    yes(
      'one link without constraints, of a day',
      links(1, () => ({ constraints: {}, expires_at: NOW + 24 * HOUR })),
    ),
    yes('two links that say the same', links(2)),
    yes('two links, the second narrower in all', [
      ...links(1),
      linkOf('coder', 'reviewer', { capabilities: ['pay'], constraints: narrower, expires_at: NOW + 1000 }),
    ]),
    yes('five links', links(5)),
    yes('back to the root', [...links(1), linkOf('coder', 'pm')]),
    yes(
      'from a clock that is ahead',
      links(1, () => ({ issued_at: NOW + 5000 })),
    ),
  ]
}

/** Signs any fields as a link. */
function raw(fields: object, key: SigningKey, what: SignedThing = 'delegation'): Uint8Array {
  const body = encodeJson(fields)
  return concat([part(body), key.sign(partInDomain(what, body))])
}

function refused(): Vector[] {
  const no = (name: string, code: string, bytes: Uint8Array, now = NOW): Vector => ({
    name,
    code,
    bytes: toHex(bytes),
    now,
  })
  const second = (more: Partial<DelegationLink>) => chainOf([...links(1), linkOf('coder', 'reviewer', more)])
  const wider = (field: string, constraints: Constraints) =>
    no(`a constraint of the parent is not kept: ${field}`, 'DELEGATION_REFUSED', second({ constraints }))
  const fields = fieldsOf(linkOf('pm', 'coder'))
  const malformed = (field: string, value: unknown) =>
    no(
      `${field}: ${JSON.stringify(value)?.slice(0, 50) ?? 'left out'}`,
      'MALFORMED',
      raw({ ...fields, [field]: value }, KEYS.pm),
    )
  const edited = (change: (bytes: Uint8Array) => void): Uint8Array => {
    const bytes = new Uint8Array(chainOf(links(2)))
    change(bytes)
    return bytes
  }
  const parent = toBase64url(chainOf(links(1)))
  return [
    no('six links', 'DELEGATION_REFUSED', chainOf(links(6))),
    no(
      'handed on by another agent than it was given to',
      'DELEGATION_REFUSED',
      chainOf([...links(1), linkOf('reviewer', 'stranger')]),
    ),
    no('a later end than the parent', 'DELEGATION_REFUSED', second({ expires_at: NOW + HOUR + 1 })),
    no('another capability than the parent', 'DELEGATION_REFUSED', second({ capabilities: ['pay', 'fix'] })),
    no('the same capability of another major', 'DELEGATION_REFUSED', second({ capabilities: ['report'] })),
    wider('all', {}),
    wider('a pointer', { '/amount': FIRST['/amount'] ?? {} }),
    wider('min', { ...FIRST, '/amount': { max: 1000 } }),
    wider('max', { ...FIRST, '/amount': { min: 0, max: 1001 } }),
    wider('one_of', { ...FIRST, '/currency': { one_of: ['EUR', 'CHF'] } }),
    wider('one_of by a prefix', { ...FIRST, '/currency': { prefix: 'E' } }),
    wider('numbers by a text', { ...FIRST, '/amount': { equals: '5' } }),
    no(
      'wider in the third link than in the second',
      'DELEGATION_REFUSED',
      chainOf([...links(1), linkOf('coder', 'reviewer', { constraints: narrower }), linkOf('reviewer', 'tester-a')]),
    ),
    no(
      'a life of more than a day',
      'DELEGATION_REFUSED',
      chainOf(links(1, () => ({ expires_at: NOW + 24 * HOUR + 1 }))),
    ),
    no('an end before its beginning', 'DELEGATION_REFUSED', chainOf(links(1, () => ({ expires_at: NOW })))),
    no('from an agent to itself', 'DELEGATION_REFUSED', chainOf([linkOf('pm', 'pm')])),
    no('of another network', 'WRONG_NETWORK', chainOf(links(1, () => ({ network: 'prod' })))),
    no('its end is over', 'EXPIRED', chainOf(links(1)), NOW + HOUR + 30_001),
    no('the end of its parent is over', 'EXPIRED', second({ expires_at: NOW + 1000 }), NOW + HOUR + 30_001),
    no('from the future', 'EXPIRED', chainOf(links(1)), NOW - 600_001),
    no(
      'a key that does not speak for its agent',
      'NOT_ALLOWED',
      raw(fieldsOf({ ...linkOf('pm', 'coder'), key: KEYS.stranger.publicKey.raw }), KEYS.stranger),
    ),
    no('signed by another key than its own', 'BAD_SIGNATURE', raw(fields, KEYS.coder)),
    no('signed as a certificate', 'BAD_SIGNATURE', raw(fields, KEYS.pm, 'certificate')),
    no(
      'a parent that was changed',
      'BAD_SIGNATURE',
      raw(
        {
          ...fieldsOf(linkOf('coder', 'reviewer')),
          parent: toBase64url(raw({ ...fields, constraints: FIRST, capabilities: ['pay', 'report@2'] }, KEYS.coder)),
        },
        KEYS.coder,
      ),
    ),
    no(
      'a byte of the signature changed',
      'BAD_SIGNATURE',
      edited((bytes) => {
        bytes[bytes.length - 1] = (bytes.at(-1) as number) ^ 1
      }),
    ),
    no('more than its end', 'MALFORMED', concat([chainOf(links(1)), new Uint8Array(1)])),
    no('a parent that is no document', 'MALFORMED', raw({ ...fields, parent: 'AAAA' }, KEYS.pm)),
    malformed('until', 5),
    malformed('__proto_', {}),
    malformed('parent', 5),
    malformed('parent', `${parent}=`),
    malformed('network', 'Dev'),
    malformed('from', 'пm'),
    malformed('to', undefined),
    malformed('key', 'AAAA'),
    malformed('capabilities', []),
    malformed('capabilities', ['pay*']),
    malformed('capabilities', ['hermes.flight']),
    malformed('capabilities', 'pay'),
    malformed('capabilities', new Array(33).fill('pay')),
    malformed('constraints', undefined),
    malformed('constraints', []),
    malformed('constraints', { amount: { max: 5 } }),
    malformed('constraints', { '/amount': {} }),
    malformed('constraints', { '/amount': { maximum: 5 } }),
    malformed('constraints', { '/amount': { min: 5, max: 4 } }),
    malformed('constraints', { '/amount': { one_of: [] } }),
    malformed('constraints', { '/amount': { equals: { a: 1 } } }),
    malformed('constraints', { '/amount': { prefix: '' } }),
    malformed('issued_at', -1),
    malformed('expires_at', 1.5),
  ]
}

/** What a constraint finds in an input. */
function findings(): Vector[] {
  const samples: [Constraints, unknown][] = [
    [{ '/a': { equals: 'x' } }, { a: 'x' }],
    [{ '/a': { equals: 'x' } }, { a: 'y' }],
    [{ '/a': { equals: 'x' } }, {}],
    [{ '/a': { equals: 'x' } }, { a: null }],
    [{ '/a': { equals: 'x' } }, { a: ['x', 'x'] }],
    [{ '/a': { equals: 'x' } }, { a: ['x', 'y'] }],
    [{ '/a': { equals: 'x' } }, { a: ['y', 'y'] }],
    [{ '/a': { equals: 'x' } }, { a: [] }],
    [{ '/a': { equals: 'x' } }, [{ a: 'x' }, { a: ['x'] }]],
    [{ '/a': { equals: 5 } }, { a: '5' }],
    [{ '/a': { equals: null } }, { a: null }],
    [{ '/a': { one_of: [1, 'x'] } }, { a: 2 }],
    [{ '/a': { one_of: [1, 'x'] } }, { a: true }],
    [{ '/a': { min: 0, max: 10 } }, { a: 10 }],
    [{ '/a': { min: 0, max: 10 } }, { a: 10.5 }],
    [{ '/a': { min: 0, prefix: 'x' } }, { a: -1 }],
    [{ '/a': { prefix: '内部/' } }, { a: '内部/x' }],
    [{ '': { equals: 1 } }, 1],
    [{ '/a~1b/~0': { equals: 1 } }, { 'a/b': { '~': 1 } }],
    [{ '/a/0': { equals: 1 } }, { a: [1] }],
    [{ '/a': { equals: 1 }, '/b': { equals: 1 } }, { a: 1 }],
    [{ '/a': { equals: 1 }, '/b': { equals: 1 } }, { b: 2 }],
    [{}, {}],
  ]
  return samples.map(([constraints, input]) => ({
    constraints,
    input,
    finding: judgeConstraints(placed(constraints), input),
  }))
}

export function delegationVectors(): Vector {
  return {
    about:
      'Delegations: signed documents, each with the one that it stands on as `parent` (the whole of it, base64url). `links` is the chain from the root, `bytes` the last document in hex, `sha256` what the header names it by. Judged at `now` in the network dev-team with 600,000 ms of tolerance at the beginning and 30,000 at the end of a life; the keys are those of keys.json. `findings`: what constraints find in an input, all together: what allows needs yes.',
    accepted: accepted(),
    refused: refused(),
    findings: findings(),
  }
}
