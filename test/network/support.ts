import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { peerIdOf, signingKey, toBase64url } from '@hermes-peer/protocol'
import { createPeer, type Peer, type PeerOptions } from 'hermes-peer'
import { onTestFinished } from 'vitest'
import { toPem } from '../../packages/peer/src/identity/key-file.ts'
import { until } from '../../packages/peer/test/waiting.ts'

/** A folder that goes with the test. */
export function temporaryFolder(): string {
  const path = mkdtempSync(join(tmpdir(), 'hermes-network-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

/** The key of a name is always the same, so that agents can be told of each other before they exist. */
export const seedOf = (name: string): Uint8Array => new Uint8Array(createHash('sha256').update(name).digest())
export const peerIdNamed = (name: string): string => peerIdOf(signingKey(seedOf(name)).publicKey.raw)
export const listed = (...names: string[]) =>
  names.map((name) => ({ agent_id: name, key: toBase64url(signingKey(seedOf(name)).publicKey.raw) }))

/** An agent of the server preset that is not started, stopped with the test. */
export function agent(name: string, options: Partial<PeerOptions> = {}): Peer {
  const identity = join(temporaryFolder(), `${name}.pem`)
  writeFileSync(identity, toPem(seedOf(name)), { mode: 0o600 })
  const peer = createPeer({
    agentId: name,
    network: 'relayed',
    preset: 'server',
    identity,
    journal: false,
    policy: { serve: [{ principal: '*', capability: '*' }], call: [{ principal: '*', capability: '*' }] },
    trust: { allow: listed('caller', 'hidden', 'relay', 'other') },
    listen: ['/ip4/127.0.0.1/tcp/0'],
    ...options,
    // Machines under test are slow, and reconnects should not be.
    tuning: { dialTimeoutMs: 10_000, pendingHandshakesPerAddress: 64, ...options.tuning },
  })
  onTestFinished(() => peer.stop({ drainMs: 0 }))
  return peer
}

/** A port of loopback that nobody listens on. */
export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** Repeats a call that may fail while links come back. */
export async function eventually<T>(run: () => Promise<T>, what: string, ms = 20_000): Promise<T> {
  let answer: { value: T } | undefined
  let last: unknown
  let running = false
  await until(
    () => {
      if (!running && answer === undefined) {
        running = true
        run()
          .then(
            (value) => {
              answer = { value }
            },
            (error) => {
              last = error
            },
          )
          .finally(() => {
            running = false
          })
      }
      return answer !== undefined
    },
    what,
    ms,
  ).catch((error) => {
    throw new Error(`${(error as Error).message}: ${last}`)
  })
  return (answer as unknown as { value: T }).value
}
