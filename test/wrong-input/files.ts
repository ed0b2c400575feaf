import { createHash, generateKeyPairSync } from 'node:crypto'
import { chmodSync, mkdirSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { signingKey, toBase64url } from '@hermes-peer/protocol'
import { createPeer } from 'hermes-peer'
import { belowAFile, type Case, type Edge, fileIn, startWith } from './case.ts'

const ed25519 = generateKeyPairSync('ed25519')
const pem = ed25519.privateKey.export({ format: 'pem', type: 'pkcs8' }) as string
const rsa = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey.export({ format: 'pem', type: 'pkcs8' })
const publicPem = ed25519.publicKey.export({ format: 'pem', type: 'spki' })
const keyOf = (name: string) =>
  toBase64url(signingKey(new Uint8Array(createHash('sha256').update(name).digest())).publicKey.raw)
/** The identity point: one signature fits every message. */
const smallOrder = toBase64url(new Uint8Array([1, ...new Array(31).fill(0)]))

const keyFile = (name: string, content: string | Uint8Array, more: Partial<Case> = {}, mode = 0o600): Case => ({
  name,
  code: 'INVALID_KEY_FILE',
  names: /identity.*key\.pem/,
  remedy: /PEM/,
  run: ({ folder }) => startWith({ identity: fileIn(folder, 'key.pem', content, mode) }),
  ...more,
})
const exposed = (mode: number): Case =>
  keyFile(`mode ${mode.toString(8)}`, pem, {
    code: 'KEY_FILE_EXPOSED',
    names: new RegExp(`identity.*key\\.pem.*${mode.toString(8)}`),
    remedy: /chmod 600 .*key\.pem/,
    run: ({ folder }) => {
      const identity = fileIn(folder, 'key.pem', pem)
      chmodSync(identity, mode)
      return startWith({ identity })
    },
  })

export const keyFileEdge: Edge = {
  edge: 'key file',
  cases: [
    exposed(0o644),
    exposed(0o640),
    exposed(0o604),
    exposed(0o660),
    keyFile('nothing in it', ''),
    keyFile('half of a key', pem.slice(0, 70)),
    keyFile('an RSA key', rsa),
    keyFile('a public key', publicPem),
    keyFile('UTF-16', Buffer.from(`\uFEFF${pem}`, 'utf16le')),
    keyFile('Chinese text', '这不是密钥'),
    keyFile('a folder', '', {
      remedy: /PEM/,
      run: ({ folder }) => {
        const identity = join(folder, 'key.pem')
        mkdirSync(identity)
        return startWith({ identity })
      },
    }),
    keyFile('a place where none can be made', '', {
      code: 'STORAGE_FAILED',
      names: /below/,
      remedy: /permissions|space/,
      run: ({ folder }) => startWith({ identity: belowAFile(folder) }),
    }),
    {
      name: 'none given where no folder keeps one',
      code: 'INVALID_OPTION',
      names: 'identity',
      remedy: /path of a key file/,
      run: () => startWith({ preset: 'none' }),
    },
  ],
}

const epoch = (name: string, content: string): Case => ({
  name,
  code: 'STORAGE_FAILED',
  names: /key\.pem\.epoch/,
  remedy: /number/,
  run: ({ folder }) => {
    fileIn(folder, 'key.pem.epoch', content)
    return startWith({ identity: fileIn(folder, 'key.pem', pem) })
  },
})

const shared = (name: string, content: string, more: Partial<Case> = {}, mode = 0o600): Case => ({
  name,
  code: 'INVALID_KEY_FILE',
  names: /preSharedKey.*swarm\.key/,
  run: ({ folder: path }) => startWith({ preSharedKey: fileIn(path, 'swarm.key', content, mode) }),
  ...more,
})
const swarm = `/key/swarm/psk/1.0.0/\n/base16/\n${'ab'.repeat(32)}\n`

export const preSharedKeyEdge: Edge = {
  edge: 'pre-shared key file',
  cases: [
    shared('missing', '', { run: ({ folder: path }) => startWith({ preSharedKey: join(path, 'swarm.key') }) }),
    shared('empty', '', { remedy: /generatePreSharedKey/ }),
    shared('cut off', swarm.slice(0, -3), { remedy: /64 hex digits/ }),
    shared('a private key', pem, { remedy: /64 hex digits/ }),
    shared('mode 644', swarm, { code: 'KEY_FILE_EXPOSED', remedy: /chmod 600 .*swarm\.key/ }, 0o644),
  ],
}

export const epochFileEdge: Edge = {
  edge: 'epoch file',
  cases: [
    epoch('cut off to nothing', ''),
    epoch('a date', '2026-01-01'),
    epoch('a negative number', '-1'),
    epoch('a number that is not exact', '9007199254740993'),
    epoch('full-width digits', '１２３'),
  ],
}

const folder = (name: string, prepare: (path: string) => string, more: Partial<Case> = {}): Case => ({
  name,
  code: 'STORAGE_FAILED',
  names: 'folder',
  run: (scene) => startWith({}, prepare(scene.folder)),
  ...more,
})
const openTo = (mode: number): Case =>
  folder(
    `mode ${mode.toString(8)}`,
    (path) => {
      const shared = join(path, 'shared')
      mkdirSync(shared)
      chmodSync(shared, mode)
      return shared
    },
    { remedy: /chmod 700/, names: new RegExp(`folder.*shared.*${mode.toString(8)}`) },
  )

export const folderEdge: Edge = {
  edge: 'private folder',
  cases: [
    openTo(0o755),
    openTo(0o750),
    openTo(0o777),
    folder('a file in its place', (path) => fileIn(path, 'file', '')),
    folder('a place where none can be made', belowAFile, { names: /folder.*below/ }),
    folder(
      'cards that others can read',
      (path) => {
        mkdirSync(join(path, 'agents'))
        chmodSync(join(path, 'agents'), 0o755)
        return path
      },
      { remedy: /chmod 700/, names: /agents/ },
    ),
  ],
}

const trustFile = (name: string, content: string | object, names: RegExp | string, more: Partial<Case> = {}): Case => ({
  name,
  code: 'INVALID_TRUST_FILE',
  names,
  run: ({ folder: path }) =>
    startWith({
      trust: { allow: fileIn(path, 'trust.json', typeof content === 'string' ? content : JSON.stringify(content)) },
    }),
  ...more,
})
const good = JSON.stringify({ agents: [{ agent_id: 'a', key: keyOf('a') }] })
const agents = (...list: object[]) => ({ agents: list })

export const trustFileEdge: Edge = {
  edge: 'trust file',
  cases: [
    trustFile('missing', '', /trust\.allow.*missing\.json/, {
      run: ({ folder: path }) => startWith({ trust: { allow: join(path, 'missing.json') } }),
    }),
    trustFile('a folder', '', /trust\.allow/, { run: ({ folder: path }) => startWith({ trust: { allow: path } }) }),
    trustFile('empty', '', /trust\.allow.*trust\.json.*JSON/),
    trustFile('truncated', good.slice(0, -3), /trust\.allow.*trust\.json.*JSON/),
    trustFile('UTF-16', Buffer.from(`\uFEFF${good}`, 'utf16le').toString('latin1'), /trust\.json.*JSON/),
    trustFile('YAML', 'agents:\n  - agent_id: a\n', /JSON/),
    trustFile('a list without a name', '[]', 'agents'),
    trustFile('an entry without key', agents({ agent_id: 'a' }), /agents\[0\].*"key" or "fingerprint"/),
    trustFile(
      'one id twice',
      agents({ agent_id: 'a', key: keyOf('a') }, { agent_id: 'a', key: keyOf('b') }),
      /agents\[1\]\.agent_id.*a/,
    ),
    trustFile('a Cyrillic name', agents({ agent_id: 'оps', key: keyOf('a') }), /agents\[0\]\.agent_id.*\\u043e/),
    trustFile('a Chinese name', agents({ agent_id: '审查员', key: keyOf('a') }), /agents\[0\]\.agent_id/),
    trustFile('a name that is a path', agents({ agent_id: '../a', key: keyOf('a') }), /agents\[0\]\.agent_id/),
    trustFile('a key of small order', agents({ agent_id: 'a', key: smallOrder }), /agents\[0\]\.key/),
    trustFile('a key in hex', agents({ agent_id: 'a', key: 'ab'.repeat(32) }), /agents\[0\]\.key.*base64url/),
    trustFile(
      'a fingerprint in upper case',
      agents({ agent_id: 'a', fingerprint: `SHA256:${'A'.repeat(64)}` }),
      /agents\[0\]\.fingerprint.*sha256:/,
    ),
    trustFile('a wrong list in the options', '', /trust\.allow.*agents\[0\]\.key/, {
      run: () => startWith({ trust: { allow: [{ agent_id: 'a', key: smallOrder }] } }),
    }),
  ],
}

const pins = (name: string, content: string): Case => ({
  name,
  code: 'INVALID_TRUST_FILE',
  names: /trust\.pins.*pins\.json/,
  run: ({ folder: path }) => startWith({ trust: { pins: fileIn(path, 'pins.json', content) } }),
})

export const pinsEdge: Edge = {
  edge: 'pins',
  cases: [
    pins('truncated', '{"a": "sha256:'),
    pins('empty', ''),
    pins('a list', '[]'),
    pins('a name that looks like another', JSON.stringify({ оps: `sha256:${'a'.repeat(64)}` })),
    pins('a value that is no fingerprint', '{"a": "7c1d"}'),
    {
      name: 'a place where none can be kept, found out when the first is',
      code: 'STORAGE_FAILED',
      names: /below/,
      remedy: /permissions|space/,
      run: async ({ folder: path }) => {
        const pinner = createPeer({
          agentId: 'pinner',
          preset: 'none',
          identity: join(path, 'pinner.pem'),
          trust: { pins: belowAFile(path) },
        })
        await pinner.start()
        const allow = [{ agent_id: 'pinner', fingerprint: pinner.fingerprint }]
        const other = createPeer({
          agentId: 'other',
          preset: 'none',
          identity: join(path, 'other.pem'),
          trust: { allow },
        })
        await other.start()
        try {
          await pinner.connect(other.addresses[0] as string)
        } finally {
          await Promise.all([pinner.stop(), other.stop()])
        }
      },
    },
  ],
}

const listen = (name: string, address: string, more: Partial<Case> = {}): Case => ({
  name,
  code: 'INVALID_ADDRESS',
  names: /listen/,
  remedy: /\/ip4\/127\.0\.0\.1\/tcp\/4001/,
  run: ({ folder: path }) => startWith({ listen: [address] }, path),
  ...more,
})

export const listenEdge: Edge = {
  edge: 'listen address',
  cases: [
    {
      name: 'a port in use',
      code: 'ADDRESS_IN_USE',
      names: /listen.*\/ip4\/127\.0\.0\.1\/tcp\/\d+/,
      remedy: /port 0/,
      run: async ({ folder: path }) => {
        const server = createServer()
        await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
        const { port } = server.address() as { port: number }
        try {
          await startWith({ listen: [`/ip4/127.0.0.1/tcp/${port}`] }, path)
        } finally {
          await new Promise((resolve) => server.close(resolve))
        }
      },
    },
    listen('a port that does not exist', '/ip4/127.0.0.1/tcp/99999'),
    listen('a port that is no number', '/ip4/127.0.0.1/tcp/http'),
    listen('no port', '/ip4/127.0.0.1'),
    listen('UDP', '/ip4/127.0.0.1/udp/0'),
    listen('an address that is no address', '/ip4/127.0.0.1.evil.example/tcp/0'),
    listen('an announced address that is none', '', {
      names: /announce/,
      run: ({ folder: path }) => startWith({ announce: ['/ip4/300.0.0.1/tcp/1'] }, path),
    }),
    listen('a bootstrap address that is none', '', {
      names: /bootstrap/,
      run: ({ folder: path }) => startWith({ bootstrap: ['/ip4/300.0.0.1/tcp/1'] }, path),
    }),
  ],
}

const policyFile = (name: string, content: string | Uint8Array, names: RegExp, more: Partial<Case> = {}): Case => ({
  name,
  code: 'INVALID_POLICY',
  names,
  run: ({ folder }) => startWith({ policy: fileIn(folder, 'policy.yaml', content) }),
  ...more,
})

export const policyFileEdge: Edge = {
  edge: 'policy file',
  cases: [
    policyFile('that is not there', '', /policy: cannot read .*nowhere\.yaml: ENOENT/, {
      run: ({ folder }) => startWith({ policy: join(folder, 'nowhere.yaml') }),
      remedy: /path of a file/,
    }),
    policyFile('that is a folder', '', /policy: cannot read/, { run: ({ folder }) => startWith({ policy: folder }) }),
    policyFile('with nothing in it', '', /policy\.yaml: is empty/, { remedy: /serve: \[\]/ }),
    policyFile('in UTF-16', Buffer.from('\uFEFFserve: []', 'utf16le'), /policy\.yaml: is not UTF-8/, {
      remedy: /UTF-16/,
    }),
    policyFile('with a tab', 'serve:\n\t- principal: pm', /policy\.yaml:\d: .*YAML/),
    policyFile('of Chinese text', '谁可以用什么', /policy\.yaml:1: the policy must be an object/),
    policyFile('in Chinese names', '服务: []', /policy\.yaml:1: .*"服务".*not known/),
    policyFile('cut off in the middle of a rule', 'serve:\n  - principal: pm\n    capab', /policy\.yaml:\d/),
    policyFile('over 1 MiB', `serve: []\n#${'长'.repeat(400_000)}`, /1200\d\d\d bytes, the limit is 1048576/),
  ],
}
