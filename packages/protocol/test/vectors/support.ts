import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { PublicKey } from '../../src/index.ts'
import { isHermesError, publicKey } from '../../src/index.ts'
import { FOLDER } from './generate.ts'

/** An entry of a vector file as a reader of the file finds it. */
// biome-ignore lint/suspicious/noExplicitAny: the form of each file is told by what the test does with it
export type Read = any

export function read(name: string): Read {
  return JSON.parse(readFileSync(join(FOLDER, `${name}.json`), 'utf8'))
}

/** The code that a piece of code throws; `none` when it throws nothing. Mistakes are thrown on. */
export function codeOf(run: () => unknown): string {
  try {
    run()
    return 'none'
  } catch (error) {
    if (isHermesError(error)) return error.code
    throw error
  }
}

/** Keys of the scene by agent id. */
export function knownKeys(): ReadonlyMap<string, PublicKey> {
  return new Map(read('keys').keys.map((one: Read) => [one.agent_id, publicKey(Buffer.from(one.public_key, 'hex'))]))
}

/** Compares a whole list at once: the first difference shows which vector it is. */
export function verdicts(list: readonly Read[], judge: (vector: Read) => unknown): unknown[] {
  return list.map((vector) => ({ name: vector.name, code: codeOf(() => judge(vector)) }))
}

export const expected = (list: readonly Read[]): unknown[] =>
  list.map(({ name, code }) => ({ name, code: code ?? 'none' }))
