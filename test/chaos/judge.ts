import type { LogLine } from './contracts.ts'

export interface Verdict {
  readonly submitted: number
  readonly refused: number
  readonly acknowledged: number
  readonly started: number
  readonly ends: Readonly<Record<string, number>>
  /** What breaks a promise; empty when all were kept. */
  readonly broken: readonly string[]
}

/**
 * Judges what all agents have written down. A task that was acknowledged has an end; work with effects `once` was started at
 * most once, wherever; nobody ran what nobody had submitted; nobody was told two ends.
 */
export function judge(logs: readonly (readonly LogLine[])[]): Verdict {
  const lines = logs.flat()
  const effects = new Map<string, string>()
  const submitted = new Set<string>()
  const acknowledged = new Set<string>()
  const refused = new Set<string>()
  const starts = new Map<string, number>()
  /** Which process started it, and when. */
  const starters = new Map<string, string[]>()
  const ends = new Map<string, Set<string>>()
  for (const line of lines) {
    if (line.at === 'submitted') {
      submitted.add(line.id)
      effects.set(line.id, line.effects)
    } else if (line.at === 'refused') refused.add(line.id)
    else if (line.at === 'acknowledged') acknowledged.add(line.task)
    else if (line.at === 'started') {
      starts.set(line.id, (starts.get(line.id) ?? 0) + 1)
      if (line.by !== undefined) starters.set(line.id, [...(starters.get(line.id) ?? []), line.by])
    } else if (line.at === 'ended') ends.set(line.task, (ends.get(line.task) ?? new Set()).add(line.code))
    else if (line.acknowledged) acknowledged.add(line.task)
  }
  const handedOver = new Set(lines.flatMap((line) => (line.at === 'handed over' ? [line.task] : [])))
  const broken: string[] = []
  const by = (id: string): string => {
    const all = starters.get(id)
    return all ? `: ${all.join(', ')}` : ''
  }
  // Of an acknowledged task whose submitter died before it had the handle, nobody asks for the end.
  for (const task of acknowledged) {
    if (handedOver.has(task) && !ends.has(task)) broken.push(`${task} was acknowledged and never ended`)
  }
  for (const [task, codes] of ends) {
    if (codes.size > 1) broken.push(`${task} was told to have ended with ${[...codes].join(' and ')}`)
    if (codes.has('TASK_NOT_FOUND') && acknowledged.has(task)) broken.push(`${task} was acknowledged, and is lost`)
  }
  for (const [id, count] of starts) {
    if (!submitted.has(id)) broken.push(`${id} was started, and nobody has submitted it`)
    if (count > 1 && effects.get(id) === 'once') broken.push(`${id} (once) was started ${count} times${by(id)}`)
  }
  const codes: Record<string, number> = {}
  for (const [, told] of ends) for (const code of told) codes[code] = (codes[code] ?? 0) + 1
  return {
    submitted: submitted.size,
    refused: refused.size,
    acknowledged: acknowledged.size,
    started: [...starts.values()].reduce((sum, count) => sum + count, 0),
    ends: codes,
    broken,
  }
}
