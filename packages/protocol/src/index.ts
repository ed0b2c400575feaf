export { decodeCompact, encodeCompact } from './bytes/compact-json.ts'
export { concat, equalBytes, fromBase64url, fromHex, part, toBase64url, toHex, utf8 } from './bytes/parts.ts'
export { Reader } from './bytes/reader.ts'
export { readUvarint, type Uvarint, uvarintLength, writeUvarint } from './bytes/varint.ts'
export * from './constraints/index.ts'
export * from './contract/index.ts'
export { domainOf, inDomain, partInDomain, SIGNED_THINGS, type SignedThing } from './crypto/domains.ts'
export { FINGERPRINT, fingerprintOf, type PublicKey, publicKey, type SigningKey, signingKey } from './crypto/keys.ts'
export { peerIdOf } from './crypto/peer-id.ts'
export { sha256, sha256Hex, sha256Pieces } from './crypto/sha256.ts'
export {
  type Certificate,
  checkLife,
  type InstanceCertificate,
  type OrganisationCertificate,
  openCertificate,
  readCertificate,
  signCertificate,
  type TeamCertificate,
} from './documents/certificate.ts'
export {
  type Chain,
  type Issued,
  isUnder,
  type Judging,
  kindsOf,
  openChain,
  openIssued,
  type Shown,
} from './documents/chain.ts'
export {
  type DelegationContext,
  type DelegationLink,
  MAX_DELEGATION_LINKS,
  openDelegation,
  signDelegation,
} from './documents/delegation.ts'
export { type Endorsement, type OpenedEndorsement, openEndorsement, signEndorsement } from './documents/endorsement.ts'
export { lintManifest, type ManifestWarning } from './documents/lint-manifest.ts'
export {
  type CapabilityBounds,
  type CapabilityEntry,
  type Effects,
  type Manifest,
  manifestDigest,
  openManifest,
  signManifest,
} from './documents/manifest.ts'
export {
  type OpenedPresence,
  openPresence,
  type Presence,
  type PresenceState,
  signPresence,
} from './documents/presence.ts'
export { openRevocation, type Revocation, signRevocation } from './documents/revocation.ts'
export {
  type DocumentFile,
  fromFile,
  type OpenedDocument,
  openDocument,
  type SignedDocument,
  signDocument,
  toFile,
  verifyDocument,
} from './documents/signed.ts'
export {
  type BatchFrame,
  decodeFrame,
  type EnvelopeParts,
  encodeBatch,
  encodeProven,
  encodeSingle,
  type Frame,
  type ProvenFrame,
  type SignedHop,
  type SingleFrame,
} from './envelope/frame.ts'
export { decodeHeader, encodeHeader } from './envelope/header.ts'
export {
  type CallType,
  type ContentType,
  defaultExpiry,
  defaultTimeoutMs,
  type Header,
  type HeaderDraft,
  isAnswer,
  isSequenced,
  MAX_HOPS,
  MAX_LIFE_MS,
  MAX_PATH,
  type MessageType,
  mayOpenStream,
  mustOpenStream,
  PROTOCOL_VERSION,
  type Priority,
  type Recipient,
} from './envelope/header-types.ts'
export { decodeHop, type Hop, type HopsContext, hopLink, signHop, verifyHops } from './envelope/hops.ts'
export {
  auditPath,
  type BatchProof,
  decodeProof,
  merkleRoot,
  proofOf,
  type RootMemory,
  signBatch,
  verifyBatch,
  verifyProof,
} from './envelope/merkle.ts'
export {
  bindPayload,
  leafOf,
  type SealedEnvelope,
  sealEnvelope,
  signedBytesOf,
  verifyEnvelope,
  verifyPayload,
} from './envelope/seal.ts'
export { ERROR_TABLE, type ErrorCode, type ErrorRow, type ErrorSource, isErrorCode } from './errors/codes.ts'
export {
  type AttemptReport,
  type DeclaredError,
  fromWireError,
  HermesError,
  type HermesErrorOptions,
  isHermesError,
  MAX_ERROR_MESSAGE,
  toWireError,
  type WireError,
} from './errors/hermes-error.ts'
export {
  type Challenge,
  decodeChallenge,
  decodeHello,
  decodeProofMessage,
  decodeWelcome,
  encodeHello,
  encodeProof,
  encodeRefusal,
  type Hello,
  type LinkLimits,
  type Proof,
  REFUSALS,
  type Refusal,
  SIGNATURE_LENGTH,
  type Welcome,
} from './handshake/messages.ts'
export { signTranscript, type TranscriptContext, transcriptOf, verifyTranscript } from './handshake/transcript.ts'
export { newCorrelationId, newMessageId, newSessionId, newSpanId, newTraceId, type RandomBytes } from './ids.ts'
export { LIMITS, MAX_FRAME, MAX_SINGLE_FRAME } from './limits.ts'
export {
  checkName,
  ID_PATTERNS,
  isAgentId,
  isCapabilityName,
  isName,
  isReservedName,
  RESERVED_PREFIX,
} from './names.ts'
export {
  type AckPayload,
  type CancelPayload,
  decodeJson,
  decodePayload,
  deepFreeze,
  type EncodeOptions,
  type EndPayload,
  type EndStatus,
  type EventPayload,
  encodeJson,
  encodePayload,
  type HeartbeatPayload,
  isJsonObject,
  isTaskEnd,
  type JsonObject,
  type JsonValue,
  messageIdOf,
  type RequestPayload,
  type ResponsePayload,
  type ResponseStatus,
  type RetryPolicy,
  readAckPayload,
  readCancelPayload,
  readEndPayload,
  readEventPayload,
  readHeartbeatPayload,
  readRequestPayload,
  readResponsePayload,
  readTaskAnswerInput,
  readTaskCancelInput,
  readTaskCancelOutput,
  readTaskWatchInput,
  readTaskWatchOutput,
  readToolCall,
  type TaskAnswerInput,
  type TaskEvent,
  type TaskQuestion,
  type TaskState,
  type TaskWatchInput,
  type TaskWatchOutput,
  type ToolCall,
  taskIdOf,
} from './payload/index.ts'
export * from './schema/index.ts'
export { type ChunkChain, chunkChain } from './stream/chain.ts'
export {
  CHUNK_HEAD,
  type Chunk,
  decodeChunk,
  encodeAbort,
  encodeData,
  encodeEnd,
  encodePause,
  encodeResume,
  judgeChunk,
  MAX_CHUNK_BODY,
} from './stream/chunk.ts'
export { checkOpening } from './stream/opening.ts'
export {
  broadcastTopic,
  LINK_PROTOCOL,
  presenceTopic,
  providerCid,
  providerKey,
  STREAM_PROTOCOL,
  trustTopic,
} from './topics.ts'
