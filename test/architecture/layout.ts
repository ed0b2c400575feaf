/** The arrows between packages: each may import the ones named here, and no other of ours. */
export const PACKAGE_ARROWS: Readonly<Record<string, readonly string[]>> = {
  'packages/protocol': [],
  'packages/peer': ['@hermes-peer/protocol'],
  'packages/testkit': ['@hermes-peer/protocol', 'hermes-peer'],
  'packages/bench': ['@hermes-peer/protocol', 'hermes-peer'],
}

/** Any example: what users can install. */
export const EXAMPLE_ARROWS = ['@hermes-peer/protocol', 'hermes-peer', '@hermes-peer/testkit']

/** What tests may import beside what their package may: the kit for tests. */
export const TEST_ONLY = ['@hermes-peer/testkit']

/** Inside `peer`: the way of an envelope, from the caller down to the wire. A stage imports from itself and from below. */
export const STAGES: readonly string[] = [
  'calls',
  'forwarding',
  'routing',
  'guard',
  'streams',
  'delivery',
  'link',
  'network',
]

/**
 * Inside `peer`, beside the way, with the stages that each uses. Every other stage may use it: the directory reaches peers over
 * links, so links know nothing of it.
 */
export const BESIDE: Readonly<Record<string, readonly string[]>> = {
  identity: [],
  manifest: [],
  policy: [],
  telemetry: [],
  journal: [],
  sessions: [],
  context: [],
  directory: ['link', 'network'],
}

/** Root files of `peer` that everything may import: they know nothing of the stages. */
export const LEAVES = ['clock.ts', 'random.ts', 'defaults.ts', 'signals.ts', 'checks.ts']

/** Root files of `peer` that are this machine behind the seams: its clock, chance and load. */
export const MACHINE = ['clock.ts', 'random.ts', 'machine.ts']

/**
 * Files of `peer` that only describe: everything may import types from them, against the arrow too, because a type says
 * nothing about who calls whom at run time.
 */
export const CONTRACTS = [
  'api.ts',
  'network/network.ts',
  'routing/query.ts',
  'routing/record.ts',
  'telemetry/events.ts',
]

/** Only `packages/peer/src/network` knows the transport. */
export const TRANSPORT = /^(libp2p|@libp2p\/.+|@chainsafe\/libp2p-.+|@multiformats\/.+)(\/|$)/

/** Its encodings are pure, so `protocol` may use them too. */
export const ENCODINGS = /^multiformats(\/|$)/

/** Built-in modules that `protocol` may use: computing, no sockets, clock or files. `module` is for optional native code. */
export const PURE_BUILTINS = ['node:buffer', 'node:crypto', 'node:module', 'node:util']

/** Built-in modules that only some folders of `peer` may use; the others get `Network` and `Journal` handed in. */
export const DISK_BUILTINS = ['node:fs', 'node:fs/promises', 'node:os']
/** Where the home folder of the user is, the default of an option, is asked in one place. */
export const HOME_BUILTIN = { file: 'options.ts', builtin: 'node:os' }
export const DISK_FOLDERS = ['identity', 'journal', 'manifest', 'network', 'policy']
/** Files elsewhere that read one: the directory that is a file. */
export const DISK_FILES = ['directory/sources/static.ts']
export const SOCKET_BUILTINS = [
  'node:net',
  'node:tls',
  'node:dgram',
  'node:dns',
  'node:http',
  'node:https',
  'node:http2',
]

/** Time and chance come from `Clock` and `Random`, so that a simulation can replay a run. */
export const CLOCK_AND_CHANCE = [
  'Date.now',
  'Date',
  'new Date()',
  'performance.now',
  'setTimeout',
  'setInterval',
  'AbortSignal.timeout',
  'Math.random',
  'crypto.randomUUID',
  'crypto.getRandomValues',
]
export const CHANCE_IMPORTS = ['randomBytes', 'randomFill', 'randomFillSync', 'randomInt', 'randomUUID', 'webcrypto']

/** What reaches outside the process, beside the above. */
export const OUTSIDE = ['fetch', 'process.env', 'process.argv']

/** A file that does one thing fits; see CONTRIBUTING. */
export const MAX_LINES = 500
export const LONG_LINES = 300
