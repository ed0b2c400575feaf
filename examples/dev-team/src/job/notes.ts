import { closeSync, ftruncateSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import type { TestRun } from '../agents/test-client.ts'

/** What a run of the test was for: the two ends before the search, the search itself, the culprit after it. */
export type Stage = 'ends' | 'search' | 'culprit'

export type Note =
  /** A life of pm begins; its calls are under this trace. */
  | { readonly note: 'life'; readonly traceId: string }
  | ({ readonly note: 'run'; readonly stage: Stage; readonly commit: string } & Pick<
      TestRun,
      'verdict' | 'summary' | 'reason'
    >)
  | { readonly note: 'round' }
  | { readonly note: 'culprit'; readonly commit: string }
  /** The repair was handed over. */
  | { readonly note: 'task'; readonly id: string; readonly agent: string }
  /** Its news up to this number have been dealt with. */
  | { readonly note: 'news'; readonly n: number }
  | { readonly note: 'review'; readonly of: 'smallest' | 'whole'; readonly accepted: boolean }

type NoteOf<K extends Note['note']> = Extract<Note, { note: K }>

/** What pm has found out, written down as it is found, so that another life of it goes on from there. */
export interface Notes {
  add(note: Note): void
  /** All notes of one kind, those of earlier lives included, oldest first. */
  all<K extends Note['note']>(kind: K): readonly NoteOf<K>[]
  last<K extends Note['note']>(kind: K): NoteOf<K> | undefined
  close(): void
}

/**
 * Opens the file, one line of JSON a note, and makes it where it is missing. Written before `add` returns, which is enough
 * for the kill of a process; a line that a kill has cut off counts as not written. A job has some hundred notes.
 */
export function openNotes(path: string): Notes {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const file = openSync(path, 'a+', 0o600)
  const text = readFileSync(file, 'utf8')
  const whole = text.slice(0, text.lastIndexOf('\n') + 1)
  if (whole !== text) ftruncateSync(file, Buffer.byteLength(whole))
  const notes = whole
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Note)
  const all = <K extends Note['note']>(kind: K) => notes.filter((one): one is NoteOf<K> => one.note === kind)
  return {
    add(note) {
      writeSync(file, `${JSON.stringify(note)}\n`)
      notes.push(note)
    },
    all,
    last: (kind) => all(kind).at(-1),
    close: () => closeSync(file),
  }
}
