import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { FOLDER, vectorFiles } from './generate.ts'

const files = vectorFiles()

describe('the vector files', () => {
  it.each([...files.keys()])('%s is what the generator writes: the wire has not changed by accident', (name) => {
    // A wanted change: node --conditions=@hermes-peer/source --import tsx packages/protocol/test/vectors/generate.ts
    expect(readFileSync(join(FOLDER, name), 'utf8') === files.get(name)).toBe(true)
  })

  it('are all written by the generator', () => {
    const found = readdirSync(FOLDER).filter((name) => name.endsWith('.json'))
    expect(found.sort()).toEqual([...files.keys()].sort())
  })

  it('come out the same a second time', () => {
    expect([...vectorFiles()]).toEqual([...files])
  })
})
