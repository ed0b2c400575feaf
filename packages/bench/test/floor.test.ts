import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { envelope } from '../src/payload.ts'

const FLOOR = new URL('../floor/', import.meta.url)

describe('the floor', () => {
  it('is the one that published ratios refer to: its files have not changed', () => {
    const names = readdirSync(FLOOR, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.mjs'))
    const digests = names.sort().map((name) => {
      const bytes = readFileSync(new URL(name.replaceAll('\\', '/'), FLOOR))
      return `${createHash('sha256').update(bytes).digest('hex').slice(0, 16)} ${name}`
    })
    expect(digests).toMatchInlineSnapshot(`
      [
        "34bd8a54cec442e0 lib/payload.mjs",
        "c24f6d0d73c41ddd lib/rpc.mjs",
        "8f6dc539d92b9f84 lib/signers.mjs",
        "13df278584e44034 lib/tcp-peer.mjs",
        "9d78470fb1c319e1 peers/tcp-signed.mjs",
      ]
    `)
  })

  it('carries 1,024 bytes of JSON', () => {
    expect(JSON.stringify(envelope(1))).toHaveLength(1_024)
  })
})
