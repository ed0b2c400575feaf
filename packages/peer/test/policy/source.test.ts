import { mkdirSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { manualClock } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import { DEFAULTS } from '../../src/defaults.ts'
import { filePolicy } from '../../src/policy/source.ts'
import { createTelemetry } from '../../src/telemetry/telemetry.ts'
import { temporaryFolder } from '../identity/support.ts'

const rules = (...names: string[]) =>
  `serve:\n${names.map((name) => `  - principal: ${name}\n    capability: pay\n`).join('')}`

async function followed(text: string) {
  const folder = temporaryFolder()
  const path = join(folder, 'policy.yaml')
  const clock = manualClock()
  const telemetry = createTelemetry({ clock })
  const loaded: number[] = []
  const failed: string[] = []
  telemetry.events.on('policy.loaded', ({ serve }) => loaded.push(serve))
  telemetry.events.on('policy.failed', ({ reason }) => failed.push(reason))
  let touched = 0
  /** File times may be coarse: each writing gets one of its own. */
  const touch = (file = path) => utimesSync(file, 1000 + ++touched, 1000 + touched)
  const write = (content: string) => {
    writeFileSync(path, content)
    touch()
  }
  write(text)
  const source = await filePolicy(path, { clock, telemetry, lookMs: DEFAULTS.policyLookMs })
  source.watch()
  const look = () => clock.timeline.advance(DEFAULTS.policyLookMs)
  const count = () => source.current().serve.length
  return { folder, path, source, write, touch, look, count, loaded, failed, clock }
}

describe('a policy file that changes', () => {
  it('counts from the second look that finds it at rest', async () => {
    const { write, look, count, loaded } = await followed(rules('a'))
    write(rules('a', 'b'))
    await look()
    expect(count()).toBe(1)
    await look()
    expect(count()).toBe(2)
    expect(loaded).toEqual([1, 2])
    for (let n = 0; n < 5; n++) await look()
    expect(loaded).toEqual([1, 2])
  })

  it('is not read while it is being written: half of a file may be a policy too', async () => {
    const { write, look, count, failed } = await followed(rules('a', 'b', 'c'))
    for (const part of ['', rules('a'), rules('a', 'b')]) {
      write(part)
      await look()
      expect(count()).toBe(3)
    }
    write(rules('a', 'b', 'c', 'd'))
    await look()
    await look()
    expect(count()).toBe(4)
    expect(failed).toEqual([])
  })

  it('is followed when it is put in the place of the old one, and when it is reached by a link', async () => {
    const { folder, path, touch, look, count } = await followed(rules('a'))
    const next = join(folder, 'next')
    writeFileSync(next, rules('a', 'b'))
    touch(next)
    renameSync(next, path)
    await look()
    await look()
    expect(count()).toBe(2)
    const mounted = join(folder, 'mounted')
    mkdirSync(mounted)
    writeFileSync(join(mounted, 'policy.yaml'), rules('a', 'b', 'c'))
    rmSync(path)
    symlinkSync(join(mounted, 'policy.yaml'), path)
    await look()
    await look()
    expect(count()).toBe(3)
  })

  it('keeps the old rules when it is broken, says so once, and takes it when it is whole again', async () => {
    const { write, look, count, failed } = await followed(rules('a', 'b'))
    write('serve:\n  - principal: a\n')
    for (let n = 0; n < 5; n++) await look()
    expect(count()).toBe(2)
    expect(failed).toEqual(['policy.yaml:2: serve[0].capability is missing'])
    write(rules('a'))
    await look()
    await look()
    expect(count()).toBe(1)
  })

  it('keeps the old rules when it is gone, is empty, or is a folder', async () => {
    const { path, write, look, count, failed } = await followed(rules('a', 'b'))
    const spoil = [
      () => rmSync(path),
      () => write(''),
      () => {
        rmSync(path)
        mkdirSync(path)
      },
    ]
    for (const act of spoil) {
      act()
      await look()
      await look()
      expect(count()).toBe(2)
    }
    expect(failed).toHaveLength(3)
    expect(failed[0]).toMatch(/ENOENT/)
    rmSync(path, { recursive: true })
    write(rules('c'))
    await look()
    await look()
    expect(count()).toBe(1)
  })

  it('is looked at no more once that is stopped', async () => {
    const { source, write, look, count, clock } = await followed(rules('a'))
    source.stop()
    write(rules('a', 'b'))
    await look()
    await look()
    expect(count()).toBe(1)
    expect(clock.timeline.now()).toBeGreaterThan(0)
  })
})
