import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { program } from './programs/program.ts'

const root = new URL('../', import.meta.url).pathname
const readme = readFileSync(join(root, 'README.md'), 'utf8')
const home = mkdtempSync(join(tmpdir(), 'hermes-readme-'))
afterAll(() => rmSync(home, { recursive: true, force: true }))

async function run(agent: 'pm' | 'reviewer') {
  const child = spawn(process.execPath, [await program(`examples/two-agents/src/${agent}`)], {
    cwd: root,
    env: { ...process.env, HOME: home },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  child.stdout.on('data', (text) => {
    output += text
  })
  child.stderr.on('data', (text) => {
    output += text
  })
  const ended = new Promise<number | null>((resolve) => child.on('exit', resolve))
  return { child, ended, output: () => output }
}

describe('the README', () => {
  test.each(['contracts.ts', 'reviewer.ts', 'pm.ts'])('shows examples/two-agents/src/%s as it is', (file) => {
    const path = `examples/two-agents/src/${file}`
    const block = new RegExp(`<!-- ${path} -->\n\`\`\`ts\n([\\s\\S]*?)\`\`\``).exec(readme)
    expect(block?.[1]).toBe(readFileSync(join(root, path), 'utf8'))
  })

  test('the two agents find each other with no configuration, and the caller ends by itself', {
    timeout: 120_000,
  }, async () => {
    const reviewer = await run('reviewer')
    try {
      let pm = await run('pm')
      let code = await pm.ended
      // Started by hand one after the other they never race; here the caller may be up first, and says that nobody is there.
      for (let i = 0; code !== 0 && /NO_CANDIDATE|nobody/.test(pm.output()) && i < 5; i++) {
        pm = await run('pm')
        code = await pm.ended
      }
      expect(pm.output()).toContain("rule: 'no-any'")
      expect(code).toBe(0)
    } finally {
      reviewer.child.kill('SIGKILL')
      await reviewer.ended
    }
  })
})
