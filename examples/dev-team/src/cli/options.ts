import { resolve } from 'node:path'
import { Command, CommanderError } from 'commander'
import { EXIT_CODES, type FailureKind, failure } from '../failures.ts'

/** What the user asked for. */
export interface Options {
  /** Undefined: the built-in sample. */
  readonly own: OwnInput | undefined
  /** Folder for the patch. */
  readonly out: string
  readonly json: boolean
  /** Kill pm in the middle of the repair, and start it again. */
  readonly killPm: boolean
}

export interface OwnInput {
  readonly repo: string
  readonly good: string
  readonly bad: string
  readonly test: string
  readonly suite: string | undefined
  readonly setup: string | undefined
  readonly timeoutMs: number
}

/** Seconds for one run of a command, unless given. */
const DEFAULT_TIMEOUT_S = 300

const CODES: Readonly<Record<Exclude<FailureKind, never>, string>> = {
  OTHER: 'something else went wrong, or an agent was lost',
  USAGE: 'wrong options',
  NO_GIT: 'git is not installed',
  NOT_A_REPOSITORY: '--repo is not in a git repository',
  UNKNOWN_REVISION: '--good or --bad is no commit',
  GOOD_FAILS: 'the test fails at the good revision',
  BAD_PASSES: 'the test passes at the bad revision',
  FLAKY: 'the test gives different answers for one commit',
  NOT_A_DESCENDANT: 'the bad revision does not descend from the good one',
  TEST_NOT_FOUND: 'the test command, or --setup, cannot be run',
  NO_REPAIR: 'no acceptable repair was found',
}

const HELP_AFTER = `
Without options it works on a sample repository that it writes itself.

Exit codes: 0 patch written, or help shown; 128 + n ended by signal n
${Object.entries(CODES)
  .map(([kind, text]) => `${String(EXIT_CODES[kind as FailureKind]).padStart(4)}  ${text}`)
  .join('\n')}`

/**
 * Reads the command line; relative paths are those of the folder that the user stands in, which npm passes as INIT_CWD.
 * Undefined when help was asked for and written. Fails with `USAGE`.
 */
export function parseOptions(
  args: readonly string[],
  { env, write }: { env: NodeJS.ProcessEnv; write: (text: string) => void },
): Options | undefined {
  const command = new Command('npm run demo --')
    .description('Six agents find the commit that broke a test, and its smallest repair.')
    .option('--repo <folder>', 'git repository to work on; it is only read')
    .option('--good <revision>', 'an older commit at which the test passes')
    .option('--bad <revision>', 'the commit at which it fails (default: HEAD)')
    .option('--test <command>', 'the test, run with sh in a checkout; exit code 0 passes, 125 cannot tell')
    .option(
      '--suite <command>',
      'what the reviewer runs in the end (default: npm test where there is one, else the test)',
    )
    .option('--setup <command>', 'prepares each checkout once, as with "npm ci" (default: link node_modules)')
    .option('--timeout <seconds>', `longest run of a command (default: ${DEFAULT_TIMEOUT_S})`)
    .option('--out <folder>', 'where fix.patch is written', './out')
    .option('--kill-pm', 'kill pm (kill -9) in the middle of the repair; it goes on from its journal and notes', false)
    .option('--json', 'write events as lines of JSON', false)
    .helpOption('-h, --help', 'show this')
    .addHelpText('after', HELP_AFTER)
    .allowExcessArguments(false)
    .exitOverride()
    .configureOutput({ writeOut: write, writeErr: () => {} })
  try {
    command.parse(args, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode === 0) return undefined
    throw failure('USAGE', sentence(error.message), 'npm run demo -- --help shows the options.', error)
  }
  const given = command.opts<Record<string, string | undefined> & Pick<Options, 'json' | 'killPm' | 'out'>>()
  const base = env.INIT_CWD || process.cwd()
  return { own: ownInput(given, base), out: resolve(base, given.out), json: given.json, killPm: given.killPm }
}

function ownInput(given: Record<string, string | undefined | boolean>, base: string): OwnInput | undefined {
  const { repo, good, bad, test, suite, setup, timeout } = given as Record<string, string | undefined>
  if ([repo, good, bad, test, suite, setup, timeout].every((value) => value === undefined)) return undefined
  const missing = Object.entries({ '--repo': repo, '--good': good, '--test': test })
    .filter(([, value]) => value === undefined || value.trim() === '')
    .map(([name]) => name)
  if (repo === undefined || good === undefined || test === undefined || missing.length > 0) {
    throw failure(
      'USAGE',
      `${missing.join(' and ')} must be given.`,
      'For a repository of your own: npm run demo -- --repo . --good <revision> --test "npm test"',
    )
  }
  return { repo: resolve(base, repo), good, bad: bad ?? 'HEAD', test, suite, setup, timeoutMs: seconds(timeout) * 1000 }
}

function seconds(text: string | undefined): number {
  if (text === undefined) return DEFAULT_TIMEOUT_S
  const value = Number(text)
  if (value >= 1 && value <= 3600) return value
  throw failure('USAGE', `--timeout ${text} is not a number of seconds.`, 'Give 1 to 3600.')
}

function sentence(message: string): string {
  const text = message
    .replace(/^error: /, '')
    .replace(/\s+/g, ' ')
    .trim()
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.?!)]$/.test(text) ? '' : '.'}`
}
