import { type Fault, Refused } from './refused.ts'

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
export type JsonMap = { [key: string]: Json }

const MAX_DEPTH = 32
const MAX_KEYS = 10_000
const MAX_VALUES = 1_000_000
const UNSAFE_KEYS = new Set(['__proto__', 'constructor', 'prototype'])
const NUMBER = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y
const PLAIN = /[^"\\]*/y
const ESCAPES: { [letter: string]: string } = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
}

/**
 * Strict JSON: no duplicate keys, lone surrogates, `__proto__` or its kin; bounded depth and keys; no number that a
 * double would round or cannot hold.
 */
export function parseJson(bytes: Uint8Array, fault: Fault): Json {
  return new Parser(text(bytes, fault), fault).document()
}

export function text(bytes: Uint8Array, fault: Fault): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new Refused(fault, 'not UTF-8')
  }
}

class Parser {
  readonly #text: string
  readonly #fault: Fault
  #at = 0
  #keys = 0
  #values = 0

  constructor(source: string, fault: Fault) {
    this.#text = source
    this.#fault = fault
  }

  document(): Json {
    const value = this.#value(0)
    this.#space()
    if (this.#at < this.#text.length) this.#no('text after the value')
    return value
  }

  #no(why: string): never {
    throw new Refused(this.#fault, `${why} at ${this.#at}`)
  }

  #space(): void {
    while (' \t\n\r'.includes(this.#text[this.#at] ?? 'x')) this.#at += 1
  }

  #token(): string {
    this.#space()
    return this.#text[this.#at] ?? this.#no('ends too early')
  }

  #accept(symbol: string): boolean {
    if (this.#token() !== symbol) return false
    this.#at += 1
    return true
  }

  #expect(symbol: string): void {
    if (!this.#accept(symbol)) this.#no(`${symbol} expected`)
  }

  #value(depth: number): Json {
    this.#values += 1
    if (this.#values > MAX_VALUES) this.#no('too many values')
    switch (this.#token()) {
      case '{':
        return this.#object(depth + 1)
      case '[':
        return this.#array(depth + 1)
      case '"':
        return this.#string()
      case 't':
        return this.#word('true', true)
      case 'f':
        return this.#word('false', false)
      case 'n':
        return this.#word('null', null)
      default:
        return this.#number()
    }
  }

  #word<T>(word: string, value: T): T {
    if (!this.#text.startsWith(word, this.#at)) this.#no('no JSON value')
    this.#at += word.length
    return value
  }

  #object(depth: number): JsonMap {
    if (depth > MAX_DEPTH) this.#no('nested too deeply')
    this.#expect('{')
    const found = new Map<string, Json>()
    if (!this.#accept('}')) {
      do {
        if (this.#token() !== '"') this.#no('a key expected')
        const key = this.#string()
        if (found.has(key)) this.#no(`key ${key} twice`)
        if (UNSAFE_KEYS.has(key)) this.#no(`key ${key}`)
        this.#keys += 1
        if (this.#keys > MAX_KEYS) this.#no('too many keys')
        this.#expect(':')
        found.set(key, this.#value(depth))
      } while (this.#accept(','))
      this.#expect('}')
    }
    return Object.fromEntries(found)
  }

  #array(depth: number): Json[] {
    if (depth > MAX_DEPTH) this.#no('nested too deeply')
    this.#expect('[')
    const items: Json[] = []
    if (this.#accept(']')) return items
    do items.push(this.#value(depth))
    while (this.#accept(','))
    this.#expect(']')
    return items
  }

  #number(): number {
    NUMBER.lastIndex = this.#at
    const match = NUMBER.exec(this.#text)
    if (match === null) this.#no('no JSON value')
    this.#at += match[0].length
    const value = Number(match[0])
    if (!Number.isFinite(value)) this.#no('a number out of range')
    // Written as an integer it must survive as that integer.
    if (match[1] === undefined && match[2] === undefined && !Number.isSafeInteger(value)) this.#no('a large integer')
    return value === 0 ? 0 : value
  }

  #string(): string {
    this.#expect('"')
    let value = ''
    for (;;) {
      PLAIN.lastIndex = this.#at
      const run = PLAIN.exec(this.#text)?.[0] ?? ''
      for (const letter of run) if (letter < ' ') this.#no('a control character')
      value += run
      this.#at += run.length
      const next = this.#text[this.#at] ?? this.#no('a string without end')
      this.#at += 1
      if (next === '"') break
      value += this.#escape()
    }
    if (/\p{Surrogate}/u.test(value)) this.#no('half of a surrogate pair')
    return value
  }

  #escape(): string {
    const letter = this.#text[this.#at] ?? this.#no('a string without end')
    this.#at += 1
    if (letter !== 'u') return ESCAPES[letter] ?? this.#no('an unknown escape')
    const digits = this.#text.slice(this.#at, this.#at + 4)
    if (!/^[0-9a-fA-F]{4}$/.test(digits)) this.#no('an incomplete escape')
    this.#at += 4
    return String.fromCharCode(Number.parseInt(digits, 16))
  }
}
