import { delimiter, join } from 'node:path'

/** Left behind by the launcher of this program; each would change what a command of the user's does. */
const LAUNCHER =
  /^(npm_(lifecycle|package|command|execpath|node_execpath|config_local_prefix)|INIT_CWD$|NODE_TEST_CONTEXT$|NODE_CHANNEL_|NODE_UNIQUE_ID$)/

/** Tied to one repository: with them set, as in a git hook, every git command would work on that one. */
const GIT_PLACE =
  /^GIT_(DIR|WORK_TREE|INDEX_FILE|COMMON_DIR|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES|PREFIX|NAMESPACE|CEILING_DIRECTORIES|DISCOVERY_ACROSS_FILESYSTEM|QUARANTINE_PATH|DEFAULT_HASH|EXTERNAL_DIFF|DIFF_OPTS|CONFIG_PARAMETERS|CONFIG_COUNT|CONFIG_KEY_.*|CONFIG_VALUE_.*|TRACE.*|REDIRECT_.*|SHALLOW_FILE|GRAFT_FILE|REFLOG_ACTION)$/

const SECRETS = /^OPENAI_/

/** What git itself is started with: no place given from outside, no lock taken for mere reading, no questions. */
export function gitEnvironment(base: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return {
    ...without(base, [GIT_PLACE]),
    GIT_OPTIONAL_LOCKS: '0',
    GIT_TERMINAL_PROMPT: '0',
    GIT_EDITOR: 'true',
    LC_ALL: 'C',
  }
}

/** What the user's own commands see: the user's environment, and the tools installed in `folder` found first. */
export function commandEnvironment(base: NodeJS.ProcessEnv, folder: string): NodeJS.ProcessEnv {
  const env = without(base, [LAUNCHER, GIT_PLACE, SECRETS])
  const path = (env.PATH ?? '')
    .split(delimiter)
    .filter((entry) => !/[\\/](node_modules[\\/]\.bin|node-gyp-bin)$/.test(entry))
  return { ...env, PATH: [join(folder, 'node_modules', '.bin'), ...path].join(delimiter) }
}

/** For agents that have no use for the model's key. */
export function withoutSecrets(base: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return without(base, [SECRETS])
}

function without(base: NodeJS.ProcessEnv, patterns: readonly RegExp[]): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(base).filter(([name]) => !patterns.some((pattern) => pattern.test(name))))
}
