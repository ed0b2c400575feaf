import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { notedRuns } from '../src/job/noted-runs.ts'
import { openNotes } from '../src/job/notes.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'dev-team-test-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))
const open = () => openNotes(join(folder, 'pm', 'notes.jsonl'))

/** Counts runs; each passes. */
const runs = () => {
  const made: string[] = []
  const run = async (commit: string) => {
    made.push(commit)
    return { verdict: 'pass' as const, summary: `検査 ${commit}` }
  }
  return { made, run }
}

describe('the notes of pm', () => {
  it('are read again by its next life', () => {
    const first = open()
    first.add({ note: 'life', traceId: 'a' })
    first.add({ note: 'task', id: 'task_1', agent: 'coder' })
    first.add({ note: 'news', n: 4 })
    first.add({ note: 'news', n: 5 })
    const second = open()
    expect(second.all('life')).toEqual([{ note: 'life', traceId: 'a' }])
    expect(second.last('task')).toEqual({ note: 'task', id: 'task_1', agent: 'coder' })
    expect(second.last('news')?.n).toBe(5)
    expect(second.last('culprit')).toBeUndefined()
  })

  it('lose no more than the line that a kill has cut off, and go on behind it', () => {
    open().add({ note: 'culprit', commit: 'é' })
    appendFileSync(join(folder, 'pm', 'notes.jsonl'), '{"note":"task","id":"ta')
    const second = open()
    expect(second.last('task')).toBeUndefined()
    second.add({ note: 'news', n: 1 })
    const third = open()
    expect([third.last('culprit')?.commit, third.last('task'), third.last('news')?.n]).toEqual(['é', undefined, 1])
  })
})

describe('runs that are noted', () => {
  it('are not made again by the next life, as often as they were made before', async () => {
    const first = runs()
    const ran = notedRuns(open(), 'ends', first.run)
    for (const commit of ['good', 'bad']) await ran(commit)
    const second = runs()
    const again = notedRuns(open(), 'ends', second.run)
    expect(await again('bad')).toMatchObject({ verdict: 'pass', summary: '検査 bad' })
    // Tested twice to see whether the test is flaky: the second run was not made before.
    await Promise.all([again('bad'), again('good')])
    expect([first.made, second.made]).toEqual([['good', 'bad'], ['bad']])
  })

  it('count for their own stage alone', async () => {
    await notedRuns(open(), 'search', runs().run)('c1')
    const { made, run } = runs()
    await notedRuns(open(), 'culprit', run)('c1')
    expect(made).toEqual(['c1'])
  })

  it('are not noted when nobody waits for them any more, nor when there was none', async () => {
    const notes = open()
    await notedRuns(notes, 'search', runs().run)('c1', AbortSignal.abort())
    const failing = notedRuns(notes, 'search', async () => {
      throw new Error('lost')
    })
    await expect(failing('c2')).rejects.toThrow('lost')
    expect(notes.all('run')).toEqual([])
  })
})
