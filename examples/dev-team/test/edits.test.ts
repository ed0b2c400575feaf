import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createGit, type Git } from '../src/git/git.ts'
import { countLines, parseChanges } from '../src/repair/change.ts'
import { allEdits, type Edit, editLevels, measureEdits, renderEdits } from '../src/repair/edits.ts'
import { reduceChange } from '../src/repair/reduce.ts'

let folder: string
let git: Git
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'dev-team-test-'))
  git = createGit({ cwd: folder })
  await git.run(['init', '--quiet', '.'])
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** The change from one text to another as git tells it. */
const diffOf = async (before: string | Buffer, after: string | Buffer): Promise<string> => {
  writeFileSync(join(folder, 'before'), before)
  writeFileSync(join(folder, 'after'), after)
  const { stdout } = await git.try(['diff', '--no-index', '--unified=0', '--binary', '--no-renames', 'before', 'after'])
  return stdout
    .toString('latin1')
    .replaceAll('a/before', 'a/file')
    .replaceAll('b/after', 'b/file')
    .replaceAll('b/before', 'b/file')
    .replaceAll('a/after', 'a/file')
}
const applied = async (before: string | Buffer, patch: string): Promise<Buffer> => {
  writeFileSync(join(folder, 'file'), before)
  if (patch !== '')
    await git.run(['apply', '--unidiff-zero', '--whitespace=nowarn', '-'], { input: Buffer.from(patch, 'latin1') })
  return readFileSync(join(folder, 'file'))
}

const lines = fc.array(fc.constantFrom('a', 'b', 'c', '', '-x', '+y', '@@ -1 +1 @@', 'é', ' z'), { maxLength: 12 })
const text = fc.tuple(lines, fc.boolean()).map(([all, end]) => all.join('\n') + (end && all.length > 0 ? '\n' : ''))

describe('dividing a change', () => {
  it('applies any choice of edits, all of them giving the new text and none the old', async () => {
    await fc.assert(
      fc.asyncProperty(text, text, fc.infiniteStream(fc.boolean()), async (before, after, coin) => {
        const files = parseChanges(await diffOf(before, after))
        const edits = allEdits(files)
        expect((await applied(before, renderEdits(files, edits))).toString()).toBe(after)
        const chosen = edits.filter(() => coin.next().value)
        const result = (await applied(before, renderEdits(files, chosen))).toString()
        if (chosen.length === 0) expect(result).toBe(before)
        // Lines taken and left account for every line of the result.
        const added = chosen.filter((edit) => isAdded(files, edit)).length
        const removed = chosen.length - added
        if (chosen.every(({ line }) => line >= 0)) {
          const count = (value: string): number => value.split('\n').length
          expect(count(result)).toBe(count(before) + added - removed)
        }
      }),
      { numRuns: 60 },
    )
  }, 60_000)

  it('removes a last line without line end, and not half of the same line before it', async () => {
    const files = parseChanges(await diffOf('a\na', 'a\n'))
    expect((await applied('a\na', renderEdits(files, allEdits(files)))).toString()).toBe('a\n')
  })

  it('has the same edits at each level, from hunks to single lines', async () => {
    const files = parseChanges(await diffOf('1\n2\n3\n4\n5\n6\n', '1\nb\nc\n4\n5\nf\ng\n'))
    const edits = allEdits(files)
    const [hunks, pairs, single] = editLevels(files).map((level) => level(edits))
    expect([hunks?.length, pairs?.length, single?.length]).toEqual([2, 4, 7])
    for (const groups of [hunks, pairs, single]) expect(groups?.flat()).toHaveLength(edits.length)
    expect(countLines(files)).toBe(4)
    expect(measureEdits(files, edits)).toEqual({ lines: 4, files: ['file'] })
    expect(measureEdits(files, edits.slice(0, 2)).lines).toBe(1)
    expect(measureEdits(files, edits.slice(1, 2)).lines).toBe(1)
  })

  it('puts a line beside its new version, wherever that stands among other changes', async () => {
    const before = 'const a = 1\nlog(a)\nlog(a)\nreturn a > 10\n'
    const files = parseChanges(await diffOf(before, 'return a >= 10\n'))
    const edits = allEdits(files)
    const groups = editLevels(files)[1]?.(edits) ?? []
    const last = groups.at(-1) ?? []
    expect(last).toHaveLength(2)
    expect((await applied(before, renderEdits(files, last))).toString()).toBe(before.replace('>', '>='))
  })

  it('keeps bytes that are not UTF-8, and carriage returns', async () => {
    const before = Buffer.from([0x61, 0xe9, 0x0d, 0x0a, 0x62, 0x0a])
    const after = Buffer.from([0x61, 0xe8, 0x0d, 0x0a, 0x62, 0x0a])
    const files = parseChanges(await diffOf(before, after))
    expect(await applied(before, renderEdits(files, allEdits(files)))).toEqual(after)
  })

  it('takes binary files as a whole', async () => {
    const before = Buffer.from([0, 1, 2, 3])
    const after = Buffer.from([0, 1, 9, 3, 4])
    const files = parseChanges(await diffOf(before, after))
    expect(allEdits(files)).toHaveLength(1)
    expect(files[0]?.whole).toBe(true)
  })

  it('reads new, removed and differently named files', () => {
    const files = parseChanges(
      [
        'diff --git a/new b/new',
        'new file mode 100644',
        'index 000..111',
        '--- /dev/null',
        '+++ b/new',
        '@@ -0,0 +1,2 @@',
        '+a',
        '+b',
        'diff --git a/empty b/empty',
        'deleted file mode 100644',
        'index 111..000',
        'diff --git a/m\u00c3\u00bc b/m\u00c3\u00bc',
        'index 1..2 100644',
        '--- a/m\u00c3\u00bc',
        '+++ b/m\u00c3\u00bc',
        '@@ -3 +3 @@',
        '-x',
        '+y',
        '',
      ].join('\n'),
    )
    expect(files.map(({ path, whole, hunks }) => ({ path, whole, hunks: hunks.length }))).toEqual([
      { path: 'new', whole: true, hunks: 1 },
      { path: 'empty', whole: true, hunks: 0 },
      { path: 'mü', whole: false, hunks: 1 },
    ])
  })
})

describe('reducing a change', () => {
  const change = () => diffOf('1\n2\n3\n4\n5\n6\n7\n8\n9\n', 'one\ntwo\n3\n4\nfive\n6\n7\neight\nnine\nten\n')

  it('leaves the one replaced line that is needed', async () => {
    const before = '1\n2\n3\n4\n5\n6\n7\n8\n9\n'
    const files = parseChanges(await change())
    const { patch, minimal, trials } = await reduceChange({
      files,
      // Line by line in turn, so that one folder serves.
      parallel: () => 1,
      passes: async (candidate) => (await applied(before, candidate)).toString().includes('8\n') === false,
      maxTrials: 100,
    })
    expect(minimal).toBe(true)
    expect((await applied(before, patch)).toString()).toBe('1\n2\n3\n4\n5\n6\n7\n9\n')
    expect(trials).toBeLessThan(20)
  })

  it('gives the smallest so far when its trials run out, and says that it is not proven', async () => {
    const files = parseChanges(await change())
    const result = await reduceChange({
      files,
      parallel: () => 1,
      passes: async (candidate) => candidate.includes('+eight') && candidate.includes('-8'),
      maxTrials: 3,
    })
    expect(result.minimal).toBe(false)
    expect(result.patch).toContain('+eight')
    expect(result.trials).toBe(3)
  })
})

function isAdded(files: ReturnType<typeof parseChanges>, { file, hunk, line }: Edit): boolean {
  return files[file]?.hunks[hunk]?.strands[line]?.kind === 'added'
}
