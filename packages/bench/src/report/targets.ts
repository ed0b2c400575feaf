import type { FigureName } from './samples.ts'

/** One line of the report. */
export interface Line {
  readonly title: string
  readonly figure: FigureName
  readonly digits: number
  /** Whether more or less of it is better; ratios are hermes-peer ÷ floor either way. */
  readonly better: 'less' | 'more'
  /** The aim of the first slice: a bound of the figure itself, or of its ratio to the floor. */
  readonly target?: { readonly of: 'value' | 'ratio'; readonly bound: number; readonly unit?: string }
}

export const LINES: readonly Line[] = [
  {
    title: 'one call at a time, p50 µs',
    figure: 'latency.p50Us',
    digits: 0,
    better: 'less',
    target: { of: 'ratio', bound: 1.6 },
  },
  { title: 'one call at a time, p99 µs', figure: 'latency.p99Us', digits: 0, better: 'less' },
  { title: 'CPU of both ends per such call, µs', figure: 'latency.cpuUs', digits: 0, better: 'less' },
  {
    title: 'calls/s, 64 in flight',
    figure: 'throughput.perSecond',
    digits: 0,
    better: 'more',
    target: { of: 'ratio', bound: 0.6 },
  },
  { title: 'CPU of both ends per such call, µs', figure: 'throughput.cpuUs', digits: 0, better: 'less' },
  {
    title: 'frames/s of one stream, 1 KB each',
    figure: 'stream.perSecond',
    digits: 0,
    better: 'more',
    target: { of: 'value', bound: 40_000 },
  },
  { title: '  time to its first frame, ms', figure: 'stream.firstMs', digits: 1, better: 'less' },
  { title: '  CPU of both ends per frame, µs', figure: 'stream.cpuUs', digits: 1, better: 'less' },
  {
    title: '1,000,000 bytes there and back, ms',
    figure: 'big.ms',
    digits: 1,
    better: 'less',
    target: { of: 'ratio', bound: 1.6 },
  },
  {
    title: 'start of a client to its first answer, ms',
    figure: 'cold.ms',
    digits: 0,
    better: 'less',
    target: { of: 'value', bound: 600, unit: 'ms' },
  },
  {
    title: 'start of a peer until it is called by capability, ms',
    figure: 'discovery.ms',
    digits: 0,
    better: 'less',
    target: { of: 'value', bound: 2_000, unit: 'ms' },
  },
  {
    title: 'failed calls when a provider is killed',
    figure: 'failover.failed',
    digits: 0,
    better: 'less',
    target: { of: 'value', bound: 0 },
  },
  { title: '  of how many', figure: 'failover.sent', digits: 0, better: 'more' },
  { title: '  longest time without an answer, ms', figure: 'failover.gapMs', digits: 0, better: 'less' },
  { title: 'commits stored per second, one at a time', figure: 'journal.alonePerSecond', digits: 0, better: 'more' },
  { title: '  64 in one turn, grouped', figure: 'journal.groupedPerSecond', digits: 0, better: 'more' },
  { title: '  times as many', figure: 'journal.times', digits: 1, better: 'more' },
  {
    title: 'resident memory of an idle peer, MB',
    figure: 'idle.rssMb',
    digits: 0,
    better: 'less',
    target: { of: 'value', bound: 110, unit: 'MB' },
  },
]

/** Whether a target is met, given the figure and its ratio to the floor; undefined when it was not measured. */
export function isMet(line: Line, value: number | undefined, ratio: number | undefined): boolean | undefined {
  const measured = line.target?.of === 'ratio' ? ratio : value
  if (line.target === undefined || measured === undefined) return undefined
  return line.better === 'less' ? measured <= line.target.bound : measured >= line.target.bound
}
