import { BASE, type RowEntry, type RowName } from '../rows.ts'
import type { Samples } from './samples.ts'
import { isMet, LINES, type Line } from './targets.ts'

const MEASURED: RowName = 'hermes-peer'

/** The figures of all rows side by side, in Markdown that also reads well as text. */
export function renderTable(rows: readonly RowEntry[], samples: Samples): string {
  const names = rows.map((row) => row.name)
  const compares = names.includes(BASE) && names.includes(MEASURED)
  const header = ['1 KB of JSON, two processes, loopback', ...names]
  if (compares) header.push('ratio')
  if (names.includes(MEASURED)) header.push('aim', '')
  const body = LINES.flatMap((line) => {
    const values = names.map((name) => samples.median(name, line.figure))
    if (values.every((value) => value === undefined)) return []
    const measured = samples.median(MEASURED, line.figure)
    const ratio = ratioOf(measured, samples.median(BASE, line.figure))
    const cells = [line.title, ...values.map((value) => number(value, line.digits))]
    if (compares) cells.push(ratio === undefined ? '' : `${number(ratio, 2)} ×`)
    if (names.includes(MEASURED)) cells.push(aim(line), verdict(isMet(line, measured, ratio)))
    return [cells]
  })
  return align([header, ...body])
}

function ratioOf(value: number | undefined, base: number | undefined): number | undefined {
  return value === undefined || base === undefined || base === 0 ? undefined : value / base
}

function aim({ target, better }: Line): string {
  if (target === undefined) return ''
  const unit = target.of === 'ratio' ? ' ×' : target.unit === undefined ? '' : ` ${target.unit}`
  return `${better === 'less' ? '≤' : '≥'} ${target.bound.toLocaleString('en-US')}${unit}`
}

function verdict(met: boolean | undefined): string {
  return met === undefined ? '' : met ? 'met' : 'not met'
}

function number(value: number | undefined, digits: number): string {
  if (value === undefined) return '–'
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}

function align(cells: readonly (readonly string[])[]): string {
  const widths = cells[0]?.map((_, column) => Math.max(...cells.map((row) => [...(row[column] ?? '')].length))) ?? []
  const pad = (text: string, column: number) => {
    const space = ' '.repeat((widths[column] ?? 0) - [...text].length)
    return column === 0 ? text + space : space + text
  }
  const lines = cells.map((row) => `| ${row.map(pad).join(' | ')} |`)
  const rule = `|${widths.map((width, column) => (column === 0 ? '-'.repeat(width + 2) : `${'-'.repeat(width + 1)}:`)).join('|')}|`
  return [lines[0], rule, ...lines.slice(1)].join('\n')
}
