import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type HermesError, isHermesError, type SigningKey, signingKey } from '@hermes-peer/protocol'
import { onTestFinished } from 'vitest'
import type { Claim } from '../../src/identity/trust.ts'

/** An empty folder of mode 0700, gone when the test ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'hermes-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A path that nobody can make, not even root: it lies below a file. */
export function pathBelowAFile(): string {
  const file = join(temporaryFolder(), 'file')
  writeFileSync(file, '')
  return join(file, 'below')
}

/** Always the same key for the same name. */
export function keyNamed(name: string): SigningKey {
  return signingKey(new Uint8Array(createHash('sha256').update(name).digest()))
}

export function claim(agentId: string, more: Partial<Claim> & { as?: string } = {}): Claim {
  const { as = agentId, ...rest } = more
  const { raw, fingerprint } = keyNamed(as).publicKey
  return {
    agentId,
    key: raw,
    fingerprint,
    met: 'inbound',
    address: '/ip4/127.0.0.1/tcp/4001',
    chosen: false,
    ...rest,
  }
}

export function caught(run: () => unknown): HermesError {
  try {
    run()
  } catch (error) {
    if (isHermesError(error)) return error
    throw error
  }
  throw new Error('nothing was thrown')
}
