import { countLines, type FileChange, type Hunk, type Strand } from './change.ts'

/** The smallest thing that can be taken or left: one removed or added line, or a change that cannot be divided. */
export interface Edit {
  readonly file: number
  /** -1: the whole file. */
  readonly hunk: number
  /** Place among the strands of the hunk; -1: the whole hunk. */
  readonly line: number
}

/** The edits of a change from coarse to fine; each level has the same edits in groups: by hunk, by line for line, single. */
export function editLevels(files: readonly FileChange[]): readonly ((edits: readonly Edit[]) => Edit[][])[] {
  const pairOf = (edit: Edit): number => (edit.line < 0 ? -1 : strandOf(files, edit).pair)
  return [
    (edits) => groupBy(edits, (edit) => `${edit.file}:${edit.hunk}`),
    (edits) => groupBy(edits, (edit) => `${edit.file}:${edit.hunk}:${pairOf(edit)}`),
    (edits) => edits.map((edit) => [edit]),
  ]
}

export function allEdits(files: readonly FileChange[]): Edit[] {
  return files.flatMap((change, file) =>
    change.whole
      ? [{ file, hunk: -1, line: -1 }]
      : change.hunks.flatMap((part, hunk) =>
          part.whole ? [{ file, hunk, line: -1 }] : part.strands.map((_, line) => ({ file, hunk, line })),
        ),
  )
}

/** Writes a patch of some edits; apply it with `--unidiff-zero`. Latin1, as it was read. */
export function renderEdits(files: readonly FileChange[], edits: readonly Edit[]): string {
  const out: string[] = []
  files.forEach((change, file) => {
    const chosen = edits.filter((edit) => edit.file === file)
    if (chosen.length === 0) return
    out.push(...change.header)
    if (change.whole) {
      out.push(...change.binary, ...change.hunks.flatMap((hunk) => hunk.lines))
      return
    }
    // Lines by which the new file is ahead of the old one so far.
    let shift = 0
    change.hunks.forEach((part, hunk) => {
      const here = chosen.filter((edit) => edit.hunk === hunk)
      if (here.length === 0) return
      const taken = new Set(here.map((edit) => edit.line))
      const body = part.strands.flatMap((strand, line) => renderStrand(strand, part.whole || taken.has(line)))
      const added = body.filter((line) => line[0] === '+').length
      const kept = body.filter((line) => line[0] === ' ').length
      out.push(heading(part, kept + added, shift), ...(part.whole ? part.lines.slice(1) : body))
      shift += kept + added - part.removed.length
    })
  })
  return out.length === 0 ? '' : `${out.join('\n')}\n`
}

/** What a choice of edits amounts to: changed lines, a replaced one counting once, and the files it touches. */
export function measureEdits(files: readonly FileChange[], edits: readonly Edit[]): { lines: number; files: string[] } {
  const touched = [...new Set(edits.map(({ file }) => file))]
  let lines = 0
  for (const group of groupBy(edits, ({ file, hunk }) => `${file}:${hunk}`)) {
    const [{ file, hunk, line }] = group as [Edit]
    if (hunk < 0) lines += countLines([files[file] as FileChange])
    else if (line < 0)
      lines += countLines([{ ...(files[file] as FileChange), hunks: [hunkOf(files, group[0] as Edit)] }])
    else {
      const kinds = group.map((edit) => strandOf(files, edit).kind)
      const added = kinds.filter((kind) => kind === 'added').length
      lines += Math.max(added, kinds.length - added)
    }
  }
  return { lines, files: touched.map((file) => (files[file] as FileChange).path) }
}

function renderStrand({ kind, text }: Strand, taken: boolean): string[] {
  if (taken) return [`${kind === 'removed' ? '-' : '+'}${text}`]
  return kind === 'removed' ? [` ${text}`] : []
}

/**
 * A side of no lines is named by the line before it; but `git apply` looks there first, and when that line reads the same
 * as a last one without line end, it removes half of it. So such a hunk names its own place.
 */
function heading({ oldStart, removed, whole }: Hunk, newCount: number, shift: number): string {
  const first = removed.length === 0 ? oldStart + 1 : oldStart
  const newStart = first + shift - (newCount === 0 && !whole ? 1 : 0)
  return `@@ -${oldStart},${removed.length} +${newStart},${newCount} @@`
}

function strandOf(files: readonly FileChange[], edit: Edit): Strand {
  return hunkOf(files, edit).strands[edit.line] as Strand
}

function hunkOf(files: readonly FileChange[], { file, hunk }: Edit): Hunk {
  return (files[file] as FileChange).hunks[hunk] as Hunk
}

function groupBy(edits: readonly Edit[], keyOf: (edit: Edit) => string): Edit[][] {
  const groups = new Map<string, Edit[]>()
  for (const edit of edits) {
    const key = keyOf(edit)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [edit])
    else group.push(edit)
  }
  return [...groups.values()]
}
