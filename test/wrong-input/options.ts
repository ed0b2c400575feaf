import { createPeer, dhtDirectory, type PeerOptions, redisDirectory, staticDirectory } from 'hermes-peer'
import type { Case, Edge } from './case.ts'

/** Options that TypeScript would refuse too: JavaScript users and configuration files have no types. */
const create = (options: unknown) => () => createPeer(options as PeerOptions)
const withOption = (option: unknown) => create({ agentId: 'desk', ...(option as object) })

const option = (field: string, value: unknown, name: string, more: Partial<Case> = {}): Case => ({
  name: `${field} ${name}`,
  code: 'INVALID_OPTION',
  names: field,
  run: withOption({ [field.split('.')[0] as string]: value }),
  ...more,
})

const agentId = (name: string, value: unknown): Case => ({
  name: `agentId ${name}`,
  code: 'INVALID_NAME',
  names: /^agentId: [\x20-\x7e]+$/,
  remedy: /lower-case ASCII/,
  run: create({ agentId: value }),
})

/** F-40: names that look alike, or are written in another way. */
const names: readonly Case[] = [
  agentId('is missing', undefined),
  agentId('is a number', 5),
  agentId('is empty', ''),
  agentId('in upper case', 'OPS'),
  agentId('in Chinese', '审查员'),
  agentId('with a Cyrillic o', 'оps'),
  agentId('with full-width letters', 'ｏｐｓ'),
  agentId('in decomposed form', 'café'.normalize('NFD')),
  agentId('in composed form', 'café'.normalize('NFC')),
  agentId('with a zero-width joiner', 'op\u200ds'),
  agentId('with a right-to-left override', 'ops\u202e'),
  agentId('with a trailing space', 'ops '),
  agentId('with a line feed', 'ops\n'),
  agentId('with a NUL', 'ops\u0000'),
  agentId('of 300 characters', 'a'.repeat(300)),
  agentId('that climbs out of a folder', '../ops'),
  agentId('that is a path', '/etc/passwd'),
  agentId('with a backslash', 'a\\b'),
  agentId('with a colon', 'a:b'),
  agentId('named like a Windows device', 'CON'),
  agentId('that begins with a dot', '.ops'),
  agentId('with an empty segment', 'a//b'),
  agentId('of five segments', 'a/b/c/d/e'),
]

export const optionsEdge: Edge = {
  edge: 'createPeer options',
  cases: [
    { name: 'nothing at all', code: 'INVALID_OPTION', names: /options.*agentId/, run: create(undefined) },
    { name: 'a text', code: 'INVALID_OPTION', names: 'options', run: create('desk') },
    ...names,
    {
      name: 'a misspelt option',
      code: 'INVALID_OPTION',
      names: 'bootstraps',
      remedy: 'bootstrap,',
      run: withOption({ bootstraps: [] }),
    },
    {
      name: 'network in upper case',
      code: 'INVALID_NAME',
      names: 'network',
      remedy: 'Lower-case',
      run: withOption({ network: 'Prod' }),
    },
    { name: 'network in Chinese', code: 'INVALID_NAME', names: 'network', run: withOption({ network: '生产' }) },
    option('preset', 'production', 'that does not exist', { remedy: /local, server or none/ }),
    option('trust', undefined, 'missing for the server preset', {
      run: withOption({ preset: 'server' }),
      remedy: /allow/,
    }),
    option('policy', undefined, 'missing for the server preset', {
      run: withOption({ preset: 'server', trust: { allow: [] } }),
      remedy: /policy: "\.\/policy\.yaml"/,
    }),
    option('policy', '', 'that is empty', { remedy: /path or an object/ }),
    option('policy', ['./policy.yaml'], 'that is a list', { remedy: /path of a file, or an object/ }),
    option('policy', 5, 'that is a number'),
    option('policy', { serv: [] }, 'with a field that is misspelt', {
      code: 'INVALID_POLICY',
      remedy: /version, mode, serve, call/,
    }),
    option('policy', { serve: [{ principal: 'pm' }] }, 'with half a rule', {
      code: 'INVALID_POLICY',
      names: /serve\[0\]\.capability/,
      remedy: /missing/,
    }),
    option('trust', {}, 'that names nothing', { remedy: /allow, org or pins/ }),
    option('trust.alow', { alow: './x' }, 'misspelt', { remedy: /allow, org and pins/ }),
    option('trust.allow', { allow: 5 }, 'that is a number', { remedy: /path or a list/ }),
    option('trust.pins', { pins: [] }, 'that is a list', { remedy: /path/ }),
    option('trust.pins', { pins: '' }, 'that is empty'),
    option('trust', 'x', 'that is a text'),
    option('trust.org', { org: 5 }, 'that is a number', { remedy: /path or a key/ }),
    option('trust.org', { org: '' }, 'that is empty'),
    option('certificate', '', 'that is empty'),
    option('certificate', ['x'], 'that is a list'),
    option('identity', '', 'that is empty'),
    option('identity', 5, 'that is a number'),
    option('folder', '', 'that is empty'),
    option('folder', ['x'], 'that is a list'),
    option('journal', '', 'that is empty', { remedy: /path of a folder, or false/ }),
    option('journal', true, 'that is true', { remedy: /path of a folder, or false/ }),
    option('journal', null, 'that is null'),
    option('listen', '/ip4/127.0.0.1/tcp/0', 'that is a text', { remedy: /list/ }),
    option('listen', [], 'without an address', { remedy: /at least one/ }),
    option('listen', ['/ip4/0.0.0.0/tcp/0'], 'on all interfaces under the local preset', {
      remedy: /preset: "server"/,
    }),
    option('listen', ['/ip4/10.0.0.5/tcp/0'], 'on a network under the local preset', { remedy: /preset: "server"/ }),
    option('listen', ['127.0.0.1:4001'], 'as host and port', {
      code: 'INVALID_ADDRESS',
      remedy: '/ip4/127.0.0.1/tcp/4001',
    }),
    option('bootstrap', ['http://127.0.0.1:4001'], 'as a URL', { code: 'INVALID_ADDRESS', remedy: '/ip4/' }),
    option('bootstrap', [5], 'that is a number', { code: 'INVALID_ADDRESS' }),
    option('bootstrap', ['/ip4/127.0.0.1/tcp/1 /ip4/127.0.0.1/tcp/2'], 'with a space in it', {
      code: 'INVALID_ADDRESS',
    }),
    option('bootstrap', new Array(65).fill('/ip4/127.0.0.1/tcp/1'), 'of 65 addresses', { remedy: /at most 64/ }),
    option('directories', './agents.yaml', 'that is a path', { remedy: /list/ }),
    option('directories[0]', ['./agents.yaml'], 'that holds a path', {
      remedy: /staticDirectory/,
      run: withOption({ directories: ['./agents.yaml'] }),
    }),
    option('directories', new Array(17).fill(dhtDirectory()), 'of 17', { remedy: /at most 16/ }),
    {
      name: 'staticDirectory without a path',
      code: 'INVALID_OPTION',
      names: /staticDirectory.*path/,
      run: () => staticDirectory(''),
    },
    {
      name: 'redisDirectory with what is no URL, which is not shown: it may hold a password',
      code: 'INVALID_OPTION',
      names: /^redisDirectory: url must be a URL like redis:[^\s]+$/,
      run: () => redisDirectory('秘密@10.0.0.5'),
    },
    {
      name: 'redisDirectory with the URL of something else',
      code: 'INVALID_OPTION',
      names: 'redis://',
      run: () => redisDirectory('http://10.0.0.5:6379'),
    },
    {
      name: 'redisDirectory with a misspelt option',
      code: 'INVALID_OPTION',
      names: 'prefx',
      run: () => redisDirectory('redis://10.0.0.5', { prefx: 'x' } as never),
    },
    option('announce', [''], 'that is empty', { code: 'INVALID_ADDRESS' }),
    option('preSharedKey', '', 'that is empty', { remedy: /path of a key file/ }),
    option('preSharedKey', new Uint8Array(32), 'that is the key itself', { remedy: /path of a key file/ }),
    option('mdns', 'yes', 'that is a text', { remedy: /true or false/ }),
    option('description', 5, 'that is a number'),
    option('description', '长'.repeat(2049), 'that is too long', { remedy: /2048/ }),
    option('messageLog', './log', 'that is a path', { remedy: /function/ }),
    option('tuning', 5, 'that is a number'),
    option('tuning.silence', { silence: 5 }, 'that does not exist'),
    option('tuning.silenceMs', { silenceMs: -1 }, 'that is negative', { remedy: /positive/ }),
    option('tuning.silenceMs', { silenceMs: 0 }, 'that is zero'),
    option('tuning.silenceMs', { silenceMs: Number.NaN }, 'that is no number'),
    option('tuning.silenceMs', { silenceMs: '5' }, 'that is a text'),
    option('tuning.silenceMs', { silenceMs: Number.POSITIVE_INFINITY }, 'that is infinite'),
    option('tuning.streamBufferBytes', { streamBufferBytes: 2_000_000 }, 'without room for what is on its way', {
      remedy: /at least 215722\d/,
    }),
    option('tuning.streamResumeAt', { streamResumeAt: 0.8 }, 'as high as the mark to pause', { remedy: /below/ }),
    option('tuning.streamAbortAt', { streamAbortAt: 0.8 }, 'as low as the mark to pause', { remedy: /above/ }),
    option('tuning.streamAbortAt', { streamAbortAt: 1.5 }, 'over the whole', { remedy: /at most 1/ }),
    option('tuning.__proto__', JSON.parse('{"__proto__": 5}'), 'that is a prototype', { names: /tuning/ }),
  ],
}
