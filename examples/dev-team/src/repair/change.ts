import { alignLines } from './align.ts'

/**
 * A change as git tells it with no context lines, one character for one byte, so that files in any encoding survive.
 */
export interface FileChange {
  /** As git writes it, for people. */
  readonly path: string
  /** The lines before the first hunk. */
  readonly header: readonly string[]
  readonly hunks: readonly Hunk[]
  /** A file made, removed, binary, or of another mode: to be taken as a whole or not at all. */
  readonly whole: boolean
  /** Everything after the header of a binary change. */
  readonly binary: readonly string[]
}

export interface Hunk {
  /** First old line; where nothing is removed, the line after which is added. */
  readonly oldStart: number
  readonly removed: readonly string[]
  readonly added: readonly string[]
  /** All of them, each beside its other version, so that any choice reads in order. */
  readonly strands: readonly Strand[]
  /** It changes whether the file ends in a line end: to be taken as a whole or not at all. */
  readonly whole: boolean
  /** As git wrote it, heading included. */
  readonly lines: readonly string[]
}

/** A removed or an added line. */
export interface Strand {
  readonly kind: 'removed' | 'added'
  readonly text: string
  /** Equal for a removed line and the line that takes its place. */
  readonly pair: number
}

const HEADING = /^@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@/
const WHOLE =
  /^(new file mode|deleted file mode|old mode|new mode|GIT binary patch|Binary files|rename|copy|similarity) ?/

/** Reads the output of `git diff --unified=0 --no-renames --binary`, decoded as latin1. */
export function parseChanges(diff: string): FileChange[] {
  const lines = diff.split('\n')
  if (lines.at(-1) === '') lines.pop()
  const files: FileChange[] = []
  let i = 0
  while (i < lines.length) {
    const header: string[] = [lines[i++] as string]
    if (!header[0]?.startsWith('diff --git ')) throw new Error(`not a git diff: ${header[0]?.slice(0, 80)}`)
    while (i < lines.length && !isHeading(lines[i]) && !isBinary(lines[i]) && !isFile(lines[i]))
      header.push(lines[i++] as string)
    const binary: string[] = []
    if (isBinary(lines[i])) while (i < lines.length && !isFile(lines[i])) binary.push(lines[i++] as string)
    const hunks: Hunk[] = []
    while (isHeading(lines[i])) {
      const hunk = parseHunk(lines, i)
      hunks.push(hunk)
      i += hunk.lines.length
    }
    const whole = binary.length > 0 || header.some((line) => WHOLE.test(line))
    files.push({ path: pathOf(header), header, hunks, whole, binary })
  }
  return files
}

/** Changed lines: a replaced line counts once. */
export function countLines(files: readonly FileChange[]): number {
  return files
    .flatMap((file) => file.hunks)
    .reduce((sum, hunk) => sum + Math.max(hunk.removed.length, hunk.added.length), 0)
}

function parseHunk(lines: readonly string[], start: number): Hunk {
  const [, oldStart, oldCount = '1'] = HEADING.exec(lines[start] as string) as unknown as [string, string, string?]
  const removed: string[] = []
  const added: string[] = []
  let whole = false
  let i = start + 1
  // Counting tells a removed line that looks like a heading from a heading.
  for (; i < lines.length; i++) {
    const line = lines[i] as string
    if (line.startsWith('-') && removed.length < Number(oldCount)) removed.push(line.slice(1))
    else if (line.startsWith('+')) added.push(line.slice(1))
    else if (line.startsWith('\\')) whole = true
    else break
  }
  return {
    oldStart: Number(oldStart),
    removed,
    added,
    strands: weave(removed, added),
    whole,
    lines: lines.slice(start, i),
  }
}

function weave(removed: readonly string[], added: readonly string[]): Strand[] {
  return alignLines(removed, added).flatMap((step, pair) => [
    ...(step.removed === undefined ? [] : [{ kind: 'removed' as const, text: removed[step.removed] as string, pair }]),
    ...(step.added === undefined ? [] : [{ kind: 'added' as const, text: added[step.added] as string, pair }]),
  ])
}

function isHeading(line: string | undefined): boolean {
  return line !== undefined && HEADING.test(line)
}

function isBinary(line: string | undefined): boolean {
  return line !== undefined && /^(GIT binary patch$|Binary files )/.test(line)
}

function isFile(line: string | undefined): boolean {
  return line?.startsWith('diff --git ') ?? false
}

function pathOf(header: readonly string[]): string {
  const named =
    header.find((line) => line.startsWith('+++ ') && line !== '+++ /dev/null') ??
    header.find((line) => line.startsWith('--- ') && line !== '--- /dev/null')
  const raw = named === undefined ? (header[0] as string).slice('diff --git '.length).split(' b/')[0] : named.slice(4)
  const path = (raw as string).replace(/\t$/, '').replace(/^"?[ab]\//, '')
  return Buffer.from(path, 'latin1').toString('utf8')
}
