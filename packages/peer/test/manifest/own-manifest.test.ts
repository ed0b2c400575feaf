import { openManifest } from '@hermes-peer/protocol'
import { manualClock } from '@hermes-peer/testkit'
import { expect, it } from 'vitest'
import { DEFAULTS } from '../../src/defaults.ts'
import { ownInstance } from '../../src/identity/own-instance.ts'
import { createOwnManifest } from '../../src/manifest/own-manifest.ts'
import { keyNamed } from '../directory/support.ts'

it('the own manifest is signed anew every 12 h, under a higher serial, until the end', async () => {
  const clock = manualClock()
  const own = createOwnManifest({
    agentId: 'me',
    network: 'default',
    description: '',
    key: keyNamed('me').publicKey,
    own: () => ownInstance(keyNamed('me'), keyNamed('me').publicKey, []),
    clock,
    tunables: DEFAULTS,
    epoch: 7,
    contracts: () => [],
  })
  const [first, digest] = [own.serial, own.digest]
  await clock.timeline.advance(49 * 3_600_000)
  expect(own.serial).toBe(first + 4)
  expect(own.digest).not.toBe(digest)
  const { expires_at } = openManifest(own.document, keyNamed('me').publicKey)
  expect(expires_at - clock.now()).toBeGreaterThan(36 * 3_600_000)
  own.stop()
  expect(clock.timeline.pending).toBe(0)
})
