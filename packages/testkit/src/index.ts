export type { Duration } from './clock/duration.ts'
export type { ClockOptions, ManualClock } from './clock/manual-clock.ts'
export { createTimeline, manualClock, type Timeline, type TimelineOptions } from './clock/timeline.ts'
export { type ChannelCheck, type ChannelPair, channelCompliance, type MakeChannelPair } from './compliance/channel.ts'
export {
  type DirectoryCheck,
  type DirectoryHome,
  type DirectoryMember,
  directoryCompliance,
  type MakeDirectoryHome,
} from './compliance/directory.ts'
export {
  type JournalCheck,
  type JournalHome,
  journalCompliance,
  type MakeJournalHome,
} from './compliance/journal.ts'
export {
  createSimulatedDisk,
  type DiskFault,
  type SimulatedDisk,
  type SimulatedDiskOptions,
} from './journal/simulated-disk.ts'
export { createEnvelopeFaults, type EnvelopeFaults, type EnvelopeFaultsOptions } from './network/envelope-faults.ts'
export type { WorldFaults } from './network/faults.ts'
export type { GossipChances } from './network/gossip.ts'
export { FAULT_KINDS, type FaultKind } from './network/hits.ts'
export type { MemoryNetworkOptions } from './network/memory-network.ts'
export type { WorldSettings } from './network/settings.ts'
export type { Tried } from './network/unreachable.ts'
export { createMemoryWorld, type MemoryWorld, type MemoryWorldOptions } from './network/world.ts'
export { type SeededRandom, seededRandom } from './random/seeded-random.ts'
export {
  type ObservedCall,
  type TestNetwork,
  type TestNetworkOptions,
  type TestOpened,
  testNetwork,
} from './test-network.ts'
export { createTrace, type Trace } from './trace.ts'
