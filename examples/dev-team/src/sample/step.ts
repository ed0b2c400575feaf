/** One change to one file of the sample. */
export type Edit =
  | { readonly kind: 'put'; readonly path: string; readonly text: string }
  | { readonly kind: 'swap'; readonly path: string; readonly from: string; readonly to: string }
  | { readonly kind: 'append'; readonly path: string; readonly text: string }
  | { readonly kind: 'move'; readonly path: string; readonly to: string }

/** One commit of the sample. */
export interface Step {
  readonly subject: string
  readonly edits: readonly Edit[]
  /** The commit that breaks the test. */
  readonly culprit?: true
}

export const put = (path: string, text: string): Edit => ({ kind: 'put', path, text })
export const swap = (path: string, from: string, to: string): Edit => ({ kind: 'swap', path, from, to })
export const append = (path: string, text: string): Edit => ({ kind: 'append', path, text })
export const move = (path: string, to: string): Edit => ({ kind: 'move', path, to })
export const step = (subject: string, ...edits: Edit[]): Step => ({ subject, edits })

/** Changes a tree of files in place; returns the paths that are new or different, and those that are gone. */
export function applyStep(files: Map<string, string>, { subject, edits }: Step): { changed: string[]; gone: string[] } {
  const changed = new Set<string>()
  const gone = new Set<string>()
  for (const edit of edits) {
    const before = files.get(edit.path)
    if ((before === undefined) !== (edit.kind === 'put')) throw new Error(`${subject}: ${edit.kind} ${edit.path}`)
    if (edit.kind === 'move') {
      files.delete(edit.path)
      gone.add(edit.path)
      files.set(edit.to, before as string)
      changed.add(edit.to)
      continue
    }
    files.set(edit.path, textAfter(edit, before ?? '', subject))
    changed.add(edit.path)
  }
  return { changed: [...changed], gone: [...gone] }
}

function textAfter(edit: Exclude<Edit, { kind: 'move' }>, before: string, subject: string): string {
  if (edit.kind === 'put') return edit.text
  if (edit.kind === 'append') return before + edit.text
  const parts = before.split(edit.from)
  if (parts.length !== 2) throw new Error(`${subject}: ${edit.path} has ${parts.length - 1} times: ${edit.from}`)
  return parts.join(edit.to)
}
