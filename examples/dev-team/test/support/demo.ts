import { type ChildProcess, spawn } from 'node:child_process'
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { AgentEvent } from '../../src/events.ts'
import { bundleDemo } from '../../src/team/programs.ts'

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url))
/** As `npm run demo` starts it. */
const FROM_SOURCE = [
  '--conditions=@hermes-peer/source',
  '--import',
  'tsx',
  fileURLToPath(new URL('../../src/main.ts', import.meta.url)),
]

/** The demo put together once for many runs: each then starts in a tenth of a second of processor time, its agents too. */
export interface BundledDemo {
  /** Arguments of node. */
  readonly program: readonly string[]
  /** The same main program with other agents beside it: pm reports what it is given, the others wait for their end. */
  withPmThat(name: string, reports: AgentEvent): BundledDemo
  remove(): void
}

export async function bundleForTests(): Promise<BundledDemo> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'dev-team-programs-')))
  // Where a program looks for packages that it does not hold, such as the type checker.
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  const main = await bundleDemo(join(folder, 'programs'))
  const remove = (): void => rmSync(folder, { recursive: true, force: true })
  const demo: BundledDemo = {
    program: [main],
    withPmThat(name, reports) {
      const place = join(folder, name)
      if (existsSync(place)) return { ...demo, program: [join(place, 'main.mjs')] }
      mkdirSync(place)
      for (const file of readdirSync(join(folder, 'programs'))) {
        if (!AGENTS.includes(basename(file, '.mjs'))) linkSync(join(folder, 'programs', file), join(place, file))
      }
      const wait = "process.on('message', ({ type }) => type === 'stop' && process.exit())\n"
      for (const agent of AGENTS) {
        const say = agent === 'pm' ? `process.send(${JSON.stringify(reports)})\n` : ''
        writeFileSync(join(place, `${agent}.mjs`), wait + say)
      }
      return { ...demo, program: [join(place, 'main.mjs')] }
    },
    remove,
  }
  return demo
}

const AGENTS = ['pm', 'tester', 'coder', 'reviewer']

export interface DemoEnd {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
  /** Parsed lines of `--json`. */
  readonly events: readonly Record<string, unknown>[]
}

export interface Demo {
  readonly child: ChildProcess
  readonly end: Promise<DemoEnd>
  /** Resolves with the first event of a type once it has been written. */
  seen(type: string, where?: (event: Record<string, unknown>) => boolean): Promise<Record<string, unknown>>
}

/** A folder of its own for one test, with what is needed to see whether a run left anything behind. */
export interface Place {
  readonly folder: string
  /** `other`: another demo than that of the place. */
  start(args: readonly string[], env?: NodeJS.ProcessEnv, other?: BundledDemo): Demo
  run(args: readonly string[], env?: NodeJS.ProcessEnv, other?: BundledDemo): Promise<DemoEnd>
  /** Names in the temporary folder of the runs. */
  leftFiles(): string[]
  /** Running processes that a run has started, directly or not. */
  leftProcesses(): string[]
  /** Sends one agent of the run that is going on a signal, as somebody else would; default `kill -9`. */
  kill(agentId: string, signal?: NodeJS.Signals): void
  remove(): void
}

/** `demo`: what is run; default the sources, as users run them. */
export function createPlace(demo?: BundledDemo): Place {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'dev-team-test-')))
  const temporary = mkdtempSync(join(folder, 'tmp-'))
  const mark = `HERMES_DEV_TEAM_TEST=${folder}`
  const start: Place['start'] = (args, more = {}, other = demo) => {
    const { OPENAI_BASE_URL, OPENAI_API_KEY, HERMES_MODEL, INIT_CWD, ...env } = process.env
    const child = spawn(process.execPath, [...(other?.program ?? FROM_SOURCE), ...args], {
      cwd: ROOT,
      env: { ...env, INIT_CWD: folder, TMPDIR: temporary, HERMES_DEV_TEAM_TEST: folder, ...more },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    return watch(child)
  }
  return {
    folder,
    start,
    run: (...how) => start(...how).end,
    leftFiles: () => readdirSync(temporary).filter((name) => name.startsWith('hermes-')),
    leftProcesses: () => processesMarked(mark),
    kill(agentId, signal = 'SIGKILL') {
      const found = processesMarked(mark).find((line) => line.includes(`/${agentId}.json`))
      if (found === undefined) throw new Error(`${agentId} does not run`)
      process.kill(Number(found.split(' ')[0]), signal)
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

function watch(child: ChildProcess): Demo {
  let stdout = ''
  let stderr = ''
  const events: Record<string, unknown>[] = []
  const waiting = new Set<() => void>()
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
    const lines = stdout.split('\n').slice(0, -1)
    while (events.length < lines.length) {
      const line = lines[events.length] as string
      events.push(line.startsWith('{') ? JSON.parse(line) : { type: 'text', line })
    }
    for (const check of waiting) check()
  })
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const end = new Promise<DemoEnd>((resolve) => {
    child.once('close', (code) => resolve({ code, stdout, stderr, events }))
  })
  return {
    child,
    end,
    seen: (type, where = () => true) =>
      new Promise((resolve, reject) => {
        const check = (): void => {
          const event = events.find((one) => one.type === type && where(one))
          if (event === undefined) return
          waiting.delete(check)
          resolve(event)
        }
        waiting.add(check)
        void end.then(() => reject(new Error(`ended without ${type}: ${stdout}${stderr}`)))
        check()
      }),
  }
}

/** Only Linux tells the environment of other processes by files; elsewhere nothing is found. */
function processesMarked(mark: string): string[] {
  const read = (pid: string, file: string): string => {
    try {
      return readFileSync(`/proc/${pid}/${file}`, 'utf8')
    } catch {
      return ''
    }
  }
  try {
    return readdirSync('/proc')
      .filter((pid) => /^\d+$/.test(pid) && read(pid, 'environ').split('\0').includes(mark))
      .map((pid) => `${pid} ${read(pid, 'cmdline').replaceAll('\0', ' ')}`)
  } catch {
    return []
  }
}
