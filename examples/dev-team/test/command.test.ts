import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { runCommand } from '../src/process/command.ts'
import { commandEnvironment, gitEnvironment } from '../src/process/environment.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'dev-team-test-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const run = (command: string, more: Partial<Parameters<typeof runCommand>[0]> = {}) =>
  runCommand({ command, cwd: folder, env: process.env, limitMs: 10_000, ...more })

const alive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT'
  }
}
const pidIn = (name: string): number => Number(readFileSync(join(folder, name), 'utf8'))

describe('running a command', () => {
  it('tells exit code and output of both streams', async () => {
    const result = await run('echo out; echo err >&2; exit 3')
    expect(result).toMatchObject({ code: 3, timedOut: false, cancelled: false })
    expect(result.output.split('\n').sort()).toEqual(['', 'err', 'out'])
  })

  it('says 127 for a command that does not exist', async () => {
    expect(await run('no-such-command-here')).toMatchObject({ code: 127 })
  })

  it('keeps only the end of a long output', async () => {
    const { output } = await run('i=0; while [ $i -lt 20000 ]; do echo "line $i of many"; i=$((i+1)); done')
    expect(output.length).toBe(64 * 1024)
    expect(output.endsWith('line 19999 of many\n')).toBe(true)
  })

  it('kills the whole process group at once when it is cancelled', async () => {
    const controller = new AbortController()
    const running = run('sleep 60 & echo $! > child; wait', { signal: controller.signal })
    await vi.waitFor(() => expect(pidIn('child')).toBeGreaterThan(0))
    controller.abort()
    expect(await running).toMatchObject({ cancelled: true, code: undefined })
    await vi.waitFor(() => expect(alive(pidIn('child'))).toBe(false))
  })

  it('kills what a finished command left running', async () => {
    expect(await run('sleep 60 & echo $! > child')).toMatchObject({ code: 0 })
    await vi.waitFor(() => expect(alive(pidIn('child'))).toBe(false))
  })

  it('ends a run that takes too long', async () => {
    expect(await run('sleep 60', { limitMs: 100 })).toMatchObject({ timedOut: true, code: undefined })
  })

  it('does not start when it is cancelled already', async () => {
    expect(await run('echo > started', { signal: AbortSignal.abort() })).toMatchObject({ cancelled: true })
    expect(existsSync(join(folder, 'started'))).toBe(false)
  })

  it('leaves no process when whoever runs it is killed with kill -9', async () => {
    const program = fileURLToPath(new URL('support/run-and-wait.ts', import.meta.url))
    const runner = spawn(
      process.execPath,
      ['--import', 'tsx', program, 'echo $$ > shell; sleep 60 & echo $! > child; wait'],
      {
        cwd: fileURLToPath(new URL('../../..', import.meta.url)),
        env: { ...process.env, FOLDER: folder },
      },
    )
    await vi.waitFor(() => expect(pidIn('child')).toBeGreaterThan(0), { timeout: 10_000 })
    runner.kill('SIGKILL')
    await vi.waitFor(() => expect([alive(pidIn('child')), alive(pidIn('shell'))]).toEqual([false, false]), {
      timeout: 5_000,
    })
  })
})

describe('the environment of commands', () => {
  it('has the tools of the checkout first and nothing of the launcher', () => {
    const env = commandEnvironment(
      {
        PATH: '/a/node_modules/.bin:/usr/bin',
        npm_lifecycle_event: 'demo',
        INIT_CWD: '/a',
        GIT_DIR: '/b',
        NODE_TEST_CONTEXT: 'child',
        HOME: '/h',
        OPENAI_API_KEY: 'k',
        npm_config_registry: 'r',
      },
      '/repository',
    )
    expect(env).toEqual({ PATH: '/repository/node_modules/.bin:/usr/bin', HOME: '/h', npm_config_registry: 'r' })
  })

  it('keeps git away from the repository of a hook, but with the settings of the user', () => {
    const env = gitEnvironment({ GIT_DIR: '/b', GIT_INDEX_FILE: '/c', GIT_CONFIG_GLOBAL: '/g', GIT_SSH_COMMAND: 'ssh' })
    expect(env).toMatchObject({ GIT_CONFIG_GLOBAL: '/g', GIT_SSH_COMMAND: 'ssh', GIT_OPTIONAL_LOCKS: '0' })
    expect(env).not.toHaveProperty('GIT_DIR')
    expect(env).not.toHaveProperty('GIT_INDEX_FILE')
  })
})
