import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const folder = fileURLToPath(new URL('../../src/', import.meta.url))
const RARE = /^(?:import|export) (?!type ).*from '@libp2p\/(?:circuit-relay-v2|dcutr|pnet)'/m

it('modules for relays and private networks are loaded only by those who ask for them: a cold start does without', () => {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
  const texts = files.map((name) => ({ name, text: readFileSync(join(folder, name), 'utf8') }))
  expect(texts.filter(({ text }) => RARE.test(text)).map(({ name }) => name)).toEqual([])
  // They are used, so that the rule has something to hold.
  for (const name of ['circuit-relay-v2', 'dcutr', 'pnet']) {
    expect(texts.some(({ text }) => text.includes(`import('@libp2p/${name}')`))).toBe(true)
  }
})
