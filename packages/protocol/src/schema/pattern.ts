import { RE2JS } from 're2js'

/** Instructions that one pattern may compile to: a repeat such as `(a{99}){99}` unfolds. */
const MAX_PROGRAM = 2_000
/** Text lengths after which the engine's cache of states is dropped, so that it cannot grow for as long as we live. */
const CACHE_LIFE = 16_384
/** Programs so small cost the same for each character whatever they are given. */
const TINY_PROGRAM = 8
/** Steps for starting the engine, however short the text. */
const STEPS_OF_A_TEST = 8

export interface Pattern {
  /** Steps that testing a text of that length may take. */
  cost(length: number): number
  test(text: string): boolean
}

/**
 * A pattern of a stranger, run by an engine whose time is linear in the text. Unanchored, as JSON Schema says. Syntax is
 * what RE2 and ECMA-262 share (no look-around, no back-references). Throws an Error that says why it cannot be used.
 */
export function compilePattern(source: string): Pattern {
  if (unfoldedSize(source) > MAX_PROGRAM) throw new Error(`its repeats unfold to more than ${MAX_PROGRAM} steps`)
  const engine = RE2JS.compile(RE2JS.translateRegExp(source))
  const size = engine.programSize()
  if (size > MAX_PROGRAM) throw new Error(`it has ${size} steps, the limit is ${MAX_PROGRAM}`)
  let life = CACHE_LIFE
  return {
    cost: (length) => STEPS_OF_A_TEST + length * (size <= TINY_PROGRAM ? 1 : size),
    test(text) {
      const found = engine.test(text)
      life -= text.length
      if (life < 0) {
        engine.reset()
        life = CACHE_LIFE
      }
      return found
    },
  }
}

/** Escapes that mean one thing to RE2 and another to ECMA-262: quotation, back-references, ends of text, bytes. */
const FOREIGN: ReadonlySet<string> = new Set(['Q', 'k', 'A', 'z', 'C'])

/** How many atoms a pattern has when its counted repeats are written out; found before anything is compiled. */
function unfoldedSize(source: string): number {
  // Sizes of the open groups; as deep as the pattern is long.
  const groups: number[] = [0]
  let last = 0
  const add = (size: number) => {
    groups[groups.length - 1] = (groups.at(-1) as number) + size
    last = size
  }
  for (let at = 0; at < source.length; at++) {
    const char = source[at]
    if (char === '\\') {
      at++
      if (FOREIGN.has(source[at] ?? '')) throw new Error(`\\${source[at]} cannot be used`)
      if (/^[pPxu]\{/.test(source.slice(at, at + 2))) at = closing(source, at, '}')
      add(1)
    } else if (char === '[') {
      at = closing(source, at + (source[at + 1] === '^' ? 1 : 0), ']')
      add(1)
    } else if (char === '(') {
      groups.push(0)
    } else if (char === ')') {
      const size = groups.length > 1 ? (groups.pop() as number) : 0
      add(size + 1)
    } else if (char === '{') {
      const repeat = /^\{(\d{1,9})(?:,(\d{0,9}))?\}/.exec(source.slice(at, at + 24))
      if (repeat) {
        const count = Math.max(Number(repeat[1]), Number(repeat[2] ?? 0), 1)
        add(last * (count - 1))
        last *= count
        at += repeat[0].length - 1
      } else {
        add(1)
      }
    } else {
      add(1)
    }
  }
  return groups.reduce((sum, size) => sum + size, 0)
}

function closing(source: string, from: number, bracket: string): number {
  for (let at = from + 1; at < source.length; at++) {
    if (source[at] === '\\') at++
    else if (source[at] === bracket) return at
  }
  return source.length
}
