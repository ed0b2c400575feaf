/** Where libp2p and gossipsub keep them; neither is promised, so each is looked at before use. */
interface AddressManager {
  _updatePeerStoreAddresses?: { stop?(): void }
}

interface Gossipsub {
  status?: { heartbeatTimeout?: NodeJS.Timeout }
}

/**
 * Stops a node together with two timers that it leaves running, which would keep the process, and the node in memory,
 * for another second: gossipsub forgets its next heartbeat, and the end of listening is noted a second late.
 */
export async function stopWithTimers(node: {
  stop(): Promise<void>
  addressManager: object
  gossip: object
}): Promise<void> {
  const heartbeat = (node.gossip as Gossipsub).status?.heartbeatTimeout
  await node.stop()
  clearTimeout(heartbeat)
  ;(node.addressManager as AddressManager)._updatePeerStoreAddresses?.stop?.()
}
