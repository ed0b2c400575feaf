export { createLibp2pNetwork } from './libp2p-network.ts'
export type { Libp2pNetworkOptions } from './options.ts'
