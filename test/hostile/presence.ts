import { signPresence } from '@hermes-peer/protocol'
import type { Actor } from './actors.ts'

/** A presence report as its agent would send it, with anything in it replaced. */
export function presenceOf(self: Actor, more: object = {}): Uint8Array {
  return signPresence(
    {
      agent_id: self.agentId,
      key: self.key.publicKey.raw,
      network: 'default',
      epoch: Date.now(),
      counter: 0,
      state: 'up',
      addresses: ['/ip4/127.0.0.1/tcp/9'],
      capabilities: ['echo'],
      load: 0,
      queue_depth: 0,
      success_rate_15m: 1,
      manifest_serial: 1,
      ...more,
    },
    self.key,
  )
}
