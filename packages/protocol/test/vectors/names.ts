import type { Vector } from './scene.ts'

const LONGEST = 'a'.repeat(64)

/** Spellings that look right to a reader, or to a lenient comparison. */
const LOOK_ALIKES = [
  '',
  ' ',
  'Ops',
  'OPS',
  'CON',
  'оps',
  'ops ',
  ' ops',
  'ops\n',
  'ops\u0000',
  'o\u200dps',
  'ops\u202e',
  'é',
  'e\u0301',
  '队长',
  '🚀',
  '.ops',
  '-ops',
  '_ops',
  '../x',
  'a\\b',
  'a:b',
  'a b',
  'a#b',
  'a@b',
  '%61',
  `${LONGEST}a`,
  'a'.repeat(300),
]

const NAMES = ['a', '0', 'ops', 'con', 'log-insight', 'a.b_c-d', '0.1', 'hermes', LONGEST]
const letters = 'AZaz09AZaz09AZaz'

export function nameVectors(): Vector {
  return {
    about:
      'Names and ids: the spellings that are legal, compared byte by byte, and others. Refused: INVALID_NAME where a name is given by a user, MALFORMED in a header.',
    network: { accepted: NAMES, refused: [...LOOK_ALIKES, 'a/b', 'a@2'] },
    topic: { accepted: NAMES, refused: [...LOOK_ALIKES, 'a/b', 'a@2'] },
    capability: {
      accepted: [...NAMES, 'fix-test@2', 'fix-test@10', `${LONGEST}@2`, 'hermes.manifest'],
      refused: [...LOOK_ALIKES, 'a/b', 'a@1', 'a@0', 'a@02', 'a@', '@2', 'a@2@3', 'a@2.0', 'a@-2', 'a@ 2', 'a@٢'],
    },
    agent_id: {
      accepted: [...NAMES, 'billing/ledger', 'a/b/c/d', `${LONGEST}/${'b'.repeat(63)}`],
      refused: [...LOOK_ALIKES, 'a/', '/a', 'a//b', 'a/b/c/d/e', 'a/B', 'a/../b', `${LONGEST}/${LONGEST}`],
    },
    message_id: ids('msg'),
    correlation_id: ids('corr'),
    session_id: ids('sess'),
  }
}

function ids(prefix: string): Vector {
  return {
    accepted: [`${prefix}_${letters}`, `${prefix}_0000000000000000`],
    refused: [
      letters,
      `${prefix}_`,
      `${prefix}_${letters.slice(1)}`,
      `${prefix}_${letters}a`,
      `${prefix}-${letters}`,
      `${prefix.toUpperCase()}_${letters}`,
      `${prefix}_${letters.slice(1)}-`,
      `${prefix}_${letters.slice(1)}é`,
      `${prefix}_${letters}\n`,
      ` ${prefix}_${letters}`,
      '7',
      '07',
    ],
  }
}
