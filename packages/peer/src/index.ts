export {
  type Capability,
  type CapabilityDraft,
  capability,
  capabilityFrom,
  describeCapability,
  HermesError,
  type InputOf,
  isError,
  isHermesError,
  lintManifest,
  type Manifest,
  type ManifestWarning,
  type OutputOf,
} from '@hermes-peer/protocol'
export type {
  Answer,
  Balance,
  CallContext,
  CallOptions,
  EmitOptions,
  EmitTarget,
  ForwardOptions,
  ForwardTarget,
  HandedOn,
  Handler,
  HandlerSession,
  NeedConfirmation,
  Peer,
  ReceivedEvent,
  ResultStream,
  SessionOptions,
  SessionTarget,
  StreamHandler,
  StreamingCapability,
  TaskHandle,
  TaskQuestionOf,
  TaskStatus,
  TaskUpdate,
  WaitOptions,
  WatchChange,
} from './api.ts'
export type { StopOptions } from './calls/drain.ts'
export type { PullOptions } from './calls/pull.ts'
export type { Session, SessionCallOptions } from './calls/session.ts'
export { type Clock, systemClock, type Timer } from './clock.ts'
export type { ContextRef } from './context/store.ts'
export { createPeer, createPeerWith } from './create-peer.ts'
export { DEFAULTS, type Tunables } from './defaults.ts'
export type { SendFilter } from './delivery/outbox.ts'
export { type RecordKindsOptions, recordKinds } from './directory/records.ts'
export { dhtDirectory } from './directory/sources/dht.ts'
export { type MemoryDirectory, memoryDirectory } from './directory/sources/memory.ts'
export { type RedisDirectoryOptions, redisDirectory } from './directory/sources/redis.ts'
export type {
  DirectoryContext,
  DirectoryFactory,
  DirectorySource,
  Registration,
} from './directory/sources/source.ts'
export { staticDirectory } from './directory/sources/static.ts'
export type { AllowedAgent } from './identity/allow-list.ts'
export { allowList } from './identity/allow-list.ts'
export {
  type CertifyAgentOptions,
  type CertifyInstanceOptions,
  certifyAgent,
  certifyInstance,
  type MadeKey,
  makeOrganisationKey,
  makeRevocation,
  makeTeamKey,
  type RevocationOptions,
  type TeamKeyOptions,
} from './identity/authority.ts'
export { type EpochStore, fileEpochStore, memoryEpochStore } from './identity/epoch.ts'
export { createKeyCheck, type KeyCheck } from './identity/key-check.ts'
export { loadOrCreateKey } from './identity/key-file.ts'
export type { Membership } from './identity/membership.ts'
export { type OrganisationOptions, organisation } from './identity/organisation.ts'
export { memoryPins, type PinStore, pinning } from './identity/pins.ts'
export { generatePreSharedKey } from './identity/pre-shared-key.ts'
export type { Claim, Judgement, Trust, TrustMemory } from './identity/trust.ts'
export { createDiskJournal, type DiskJournalOptions } from './journal/disk/disk-journal.ts'
export type { Journal, JournalChange, JournalTable } from './journal/journal.ts'
export { createMemoryJournal, createMemoryStore, type MemoryJournalOptions } from './journal/memory-journal.ts'
export type { JournalEntry, JournalPage, JournalStore } from './journal/store.ts'
export { createStoredJournal, type JournalLimits, type StoredJournalOptions } from './journal/stored-journal.ts'
export { type ManifestFile, parseManifest, readManifest } from './manifest/manifest-file.ts'
export type {
  Channel,
  ChannelListener,
  DialTarget,
  FoundPeer,
  Gossip,
  Network,
  NetworkEvents,
  Verdict,
} from './network/network.ts'
export {
  type CheckedRecord,
  createRecordJudge,
  type RecordJudge,
  type RecordJudgeOptions,
  type RecordKind,
  type RecordKinds,
} from './network/records.ts'
export type { PeerOptions, Settings, TrustOptions } from './options.ts'
export type { DelegateOptions, Delegation } from './policy/delegations.ts'
export type { CallRule, PolicyDocument, ServeRule } from './policy/document.ts'
export { evaluate as evaluatePolicy, type PolicyDecision, type PolicyRequest } from './policy/evaluate.ts'
export { explainPolicy } from './policy/explain.ts'
export type { Subject } from './policy/match.ts'
export type { Policy, Rule } from './policy/read.ts'
export { parsePolicy } from './policy/source.ts'
export { type Random, systemRandom } from './random.ts'
export type { Rotated } from './rotation.ts'
export { rerun } from './routing/decision.ts'
export { explain } from './routing/explain.ts'
export type { EmbedFunction } from './routing/intent/embedder.ts'
export { type OpenAiEmbeddingsOptions, openAiEmbeddings } from './routing/intent/openai-embeddings.ts'
export type { Candidate, Query, Sla } from './routing/query.ts'
export type { DecisionRecord } from './routing/record.ts'
export type { InstanceFiles, Opened, RotationSeam, Seams } from './seams.ts'
export { type StopOnSignalsOptions, stopOnSignals } from './stop-on-signals.ts'
export type { AnyEvent, EventMap, EventName, EventOf, PeerEvents } from './telemetry/events.ts'
export type { MessageLogLine } from './telemetry/message-log.ts'
