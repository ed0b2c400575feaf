import { stripVTControlCharacters } from 'node:util'
import { printable } from './printable.ts'

export interface TestCount {
  readonly passed: number
  readonly total: number
}

/** Reads how many tests passed from what common test runners write last; undefined for any other output. */
export function countTests(output: string): TestCount | undefined {
  const text = stripVTControlCharacters(output)
  return nodeTest(text) ?? passedAndFailed(text) ?? mocha(text)
}

/** One line about a run: counts and the first failing test where they can be read, else the last line that was written. */
export function summarize(output: string): string {
  const count = countTests(output)
  const failing = firstFailing(output)
  if (count === undefined) return failing ?? lastLine(output)
  return `${count.passed}/${count.total} tests${failing === undefined ? '' : `, fails: ${failing}`}`
}

/** node:test, as TAP (`# tests 12`) and for people (`ℹ tests 12`). */
function nodeTest(text: string): TestCount | undefined {
  const total = lastNumber(text, /^(?:#|ℹ) tests (\d+)$/gm)
  const passed = lastNumber(text, /^(?:#|ℹ) pass (\d+)$/gm)
  return total === undefined || passed === undefined ? undefined : { passed, total }
}

/** vitest, jest, pytest, cargo: a line with `11 passed`, and `1 failed` where there are any. Cargo has one a crate. */
function passedAndFailed(text: string): TestCount | undefined {
  const lines = text
    .split('\n')
    .filter((line) => /\d+ passed/.test(line) && !/^\s*(Test Files|Test Suites|Snapshots)/.test(line))
  const cargo = lines.filter((line) => line.startsWith('test result:'))
  const counted = cargo.length > 0 ? cargo : lines.slice(-1)
  if (counted.length === 0) return undefined
  const sum = (word: string): number =>
    counted.reduce((all, line) => all + Number(new RegExp(`(\\d+) ${word}`).exec(line)?.[1] ?? 0), 0)
  return { passed: sum('passed'), total: sum('passed') + sum('failed') }
}

function mocha(text: string): TestCount | undefined {
  const passed = lastNumber(text, /^\s*(\d+) passing/gm)
  return passed === undefined ? undefined : { passed, total: passed + (lastNumber(text, /^\s*(\d+) failing/gm) ?? 0) }
}

function firstFailing(output: string): string | undefined {
  const name = /^\s*(?:not ok \d+ -|✖|×|✗) +(.+)$/m.exec(stripVTControlCharacters(output))?.[1]
  return name === undefined ? undefined : printable(name, 120)
}

function lastLine(output: string): string {
  return printable(output.trimEnd().split('\n').at(-1) ?? '', 160) || 'no output'
}

function lastNumber(text: string, pattern: RegExp): number | undefined {
  const value = [...text.matchAll(pattern)].at(-1)?.[1]
  return value === undefined ? undefined : Number(value)
}
