/** Where an error arose, as told on the wire. */
export type ErrorSource = 'sender' | 'receiver' | 'tool' | 'llm' | 'network' | 'policy'

/** One row of the error table. */
export interface ErrorRow {
  /** What happened, one sentence without names or values. */
  readonly sentence: string
  /** Whether the same work may succeed when it is tried again. */
  readonly retryable: boolean
  readonly source: ErrorSource
  /** What the reader can do about it. */
  readonly hint: string
  /**
   * True when the code is a promise that no handler was started for that attempt, so that even a capability with
   * effects `once` may be asked elsewhere.
   */
  readonly notStarted?: true
  /** True when only this process says it; such a code is refused on the wire. */
  readonly local?: true
}

const row = (
  source: ErrorSource,
  retryable: boolean,
  sentence: string,
  hint: string,
  more: Pick<ErrorRow, 'notStarted' | 'local'> = {},
): ErrorRow => ({ sentence, retryable, source, hint, ...more })

const NOT_STARTED = { notStarted: true } as const
const LOCAL = { local: true } as const

/** The closed table of codes. An unknown code from a newer peer is treated as not retryable. */
export const ERROR_TABLE = {
  // Configuration and use of the API, on this machine only.
  INVALID_OPTION: row(
    'sender',
    false,
    'An option has a value that cannot work.',
    'Correct the option that is named.',
    LOCAL,
  ),
  INVALID_CONTRACT: row(
    'sender',
    false,
    'The contract of a capability cannot be used.',
    'Correct the part of the contract that is named.',
    LOCAL,
  ),
  INVALID_NAME: row(
    'sender',
    false,
    'A name or id does not have its form.',
    'Use lower-case ASCII letters, digits, dot, underscore and hyphen, at most 64 characters a segment.',
  ),
  INVALID_ADDRESS: row(
    'sender',
    false,
    'An address is not a usable multiaddr.',
    'Write it like /ip4/127.0.0.1/tcp/4001, with /p2p/<peer id> at the end where another peer is meant.',
    LOCAL,
  ),
  INVALID_KEY_FILE: row(
    'sender',
    false,
    'The key file cannot be used.',
    'Give an Ed25519 private key in PEM (PKCS #8), or remove the file to have one made.',
    LOCAL,
  ),
  KEY_FILE_EXPOSED: row(
    'sender',
    false,
    'The key file can be read by other users.',
    'Run chmod 600 on it; if others may have read it, make a new key.',
    LOCAL,
  ),
  INVALID_TRUST_FILE: row('sender', false, 'The trust file cannot be used.', 'Correct the entry that is named.', LOCAL),
  STORAGE_FAILED: row(
    'sender',
    false,
    'A file that must survive a restart could not be read or written.',
    'Free space or correct the permissions of the path that is named, then start again.',
    LOCAL,
  ),
  ADDRESS_IN_USE: row(
    'sender',
    false,
    'Another process listens on that address.',
    'Choose another port, or port 0 for any free one.',
    LOCAL,
  ),
  NOT_STARTED: row('sender', false, 'The peer is not running.', 'Call start() first.', LOCAL),
  STOPPED: row('sender', false, 'The peer has been stopped.', 'Create a new peer.', LOCAL),
  CANCELLED: row(
    'sender',
    false,
    'The work was cancelled.',
    'Nothing to do: whoever asked for it, or its deadline, ended it.',
  ),
  TIMEOUT: row(
    'receiver',
    false,
    'The work did not end within its time.',
    'Give it a longer timeoutMs, or ask for less.',
  ),
  NO_CANDIDATE: row(
    'sender',
    false,
    'No agent can serve this call.',
    'See the list of agents that were considered and why each was left out.',
    LOCAL,
  ),
  QUEUE_FULL: row(
    'sender',
    true,
    'Too much is waiting to be sent to that agent.',
    'Send less at a time, or wait for earlier calls to end.',
    LOCAL,
  ),
  RETRIES_EXHAUSTED: row('network', false, 'Every attempt failed.', 'See the attempts for the reason of each.', LOCAL),
  CONFIRMATION_NEEDED: row(
    'receiver',
    false,
    'The agent answered with a plan that waits for confirmation.',
    'Use request(), look at the partial result, and confirm in a second request of the same correlation.',
    LOCAL,
  ),
  OUTCOME_UNKNOWN: row(
    'network',
    false,
    'Whether the work was done cannot be found out.',
    'Reconcile by the message id before doing it again.',
    LOCAL,
  ),
  UNTRUSTED_ANSWER: row(
    'network',
    false,
    'An answer was not signed by the agent that was asked.',
    'Check the path between the two agents.',
    LOCAL,
  ),
  STREAM_BROKEN: row('network', false, 'A stream ended without its signed end.', 'Treat what came as incomplete.'),

  // Reaching another peer.
  PEER_UNREACHABLE: row(
    'network',
    true,
    'The agent cannot be reached.',
    'Look at the reason of each address that was tried.',
  ),
  PEER_RESTARTED: row(
    'receiver',
    true,
    'The agent has restarted since; this attempt was not started there.',
    'Ask again.',
    NOT_STARTED,
  ),
  HANDSHAKE_REFUSED: row(
    'receiver',
    false,
    'The handshake was refused.',
    'The log of the agent that refused has the reason.',
  ),
  UNSUPPORTED_VERSION: row(
    'receiver',
    false,
    'The two peers share no protocol version.',
    'Upgrade the older one.',
    NOT_STARTED,
  ),
  CLOCK_SKEW: row('receiver', false, 'The clocks of the two machines differ too much.', 'Set both by NTP.'),
  NOT_ALLOWED: row(
    'policy',
    false,
    'This agent is not admitted there.',
    'Have its fingerprint added to the trust of the other agent.',
    NOT_STARTED,
  ),
  IDENTITY_MISMATCH: row(
    'policy',
    false,
    'The key does not speak for that agent id.',
    'Compare fingerprints with the owner: it has rotated, or it is an impostor.',
  ),
  DUPLICATE_AGENT: row(
    'policy',
    false,
    'Another process runs under the same agent id.',
    'Stop one of the two, or give it an id and key of its own.',
  ),

  // Refusals of one envelope.
  MALFORMED: row(
    'sender',
    false,
    'The message does not follow the wire format.',
    'Send what the wire contract describes.',
    NOT_STARTED,
  ),
  LIMIT_EXCEEDED: row(
    'sender',
    false,
    'A part of the message is larger than its limit.',
    'Send less than the limit that is named.',
    NOT_STARTED,
  ),
  PAYLOAD_TOO_LARGE: row(
    'sender',
    false,
    'The payload is larger than the other side accepts.',
    'Send less than the limit that is named.',
    NOT_STARTED,
  ),
  UNKNOWN_TAG: row(
    'sender',
    false,
    'The frame has a tag that this peer does not know.',
    'Negotiate the feature first.',
    NOT_STARTED,
  ),
  BATCH_UNSUPPORTED: row(
    'sender',
    false,
    'Batches have not been agreed on for this link.',
    'Send one envelope per frame.',
    NOT_STARTED,
  ),
  FORWARDING_UNSUPPORTED: row(
    'receiver',
    false,
    'This peer does not take forwarded messages.',
    'Send it directly.',
    NOT_STARTED,
  ),
  STREAM_UNSUPPORTED: row(
    'receiver',
    false,
    'The capability is not offered in that call type.',
    'Stream what has yields, and call what has none.',
    NOT_STARTED,
  ),
  TASK_UNSUPPORTED: row('receiver', false, 'This peer does not take tasks.', 'Use a plain call.', NOT_STARTED),
  BAD_SIGNATURE: row(
    'sender',
    false,
    'The signature does not hold.',
    'Sign the bytes as they are sent, with the key of the handshake.',
    NOT_STARTED,
  ),
  BAD_KEY: row('sender', false, 'The public key is not an acceptable Ed25519 key.', 'Make a new key.', NOT_STARTED),
  BAD_PROOF: row(
    'sender',
    false,
    'The batch proof does not lead to its signed root.',
    'Build the proof as RFC 6962 says.',
    NOT_STARTED,
  ),
  BAD_HOPS: row(
    'sender',
    false,
    'The hops of a forwarded message do not hold together.',
    'Sign each hop over the one before.',
    NOT_STARTED,
  ),
  PAYLOAD_MISMATCH: row(
    'sender',
    false,
    'The payload is not the one that was signed.',
    'Look for what changed it on the way.',
    NOT_STARTED,
  ),
  WRONG_NETWORK: row(
    'sender',
    false,
    'The message belongs to another network.',
    'Use one network name in all agents of the network.',
    NOT_STARTED,
  ),
  WRONG_RECIPIENT: row(
    'sender',
    false,
    'The message is meant for another agent.',
    'Send it to its recipient.',
    NOT_STARTED,
  ),
  WRONG_SENDER: row(
    'sender',
    false,
    'The message was not signed by the agent at the other end of the link.',
    'Send in your own name.',
    NOT_STARTED,
  ),
  EXPIRED: row(
    'sender',
    false,
    'The message has expired.',
    'Check both clocks, and send it with a later expiry.',
    NOT_STARTED,
  ),
  EXPIRY_TOO_FAR: row(
    'sender',
    false,
    'The message would live too long, or comes from the future.',
    'Expire within 24 hours; check both clocks.',
    NOT_STARTED,
  ),
  TTL_EXPIRED: row(
    'receiver',
    false,
    'The message has taken all the hops it may.',
    'Raise max_hops, or shorten the way.',
    NOT_STARTED,
  ),
  STALE_SEQUENCE: row(
    'receiver',
    true,
    'The message came after its place in the order had been given up; it was not started and never will be.',
    'Send it again.',
    NOT_STARTED,
  ),
  STALE_EPOCH: row(
    'sender',
    false,
    'The message belongs to an earlier life of its sender.',
    'Send it again from the life that runs now.',
    NOT_STARTED,
  ),
  MESSAGE_CONFLICT: row(
    'sender',
    false,
    'The message id was used before for something else.',
    'Give each piece of work its own id.',
    NOT_STARTED,
  ),
  RESULT_GONE: row(
    'receiver',
    false,
    'The work was done, but its result is no longer kept.',
    'Reconcile by the message id.',
  ),
  BUSY: row(
    'receiver',
    true,
    'The agent has no room for more work now.',
    'Ask again later, or ask another agent.',
    NOT_STARTED,
  ),
  DRAINING: row(
    'receiver',
    true,
    'The agent is about to stop and takes no new work.',
    'Ask another agent.',
    NOT_STARTED,
  ),
  CAPABILITY_NOT_FOUND: row(
    'receiver',
    true,
    'The agent does not provide that capability.',
    'Look for one that does.',
    NOT_STARTED,
  ),
  CAPABILITY_RESERVED: row(
    'sender',
    false,
    'Names that begin with hermes. belong to the runtime.',
    'Choose another name.',
  ),
  VALIDATION_ERROR: row(
    'sender',
    false,
    'The input does not fit the schema of the capability.',
    'Correct the field that is named.',
    NOT_STARTED,
  ),
  INVALID_PAYLOAD: row(
    'sender',
    false,
    'The payload is not acceptable data.',
    'Send plain JSON data within the limits.',
    NOT_STARTED,
  ),
  CALL_CYCLE: row(
    'sender',
    false,
    'The call would wait for itself.',
    'Break the cycle that the path shows.',
    NOT_STARTED,
  ),
  DEPTH_EXCEEDED: row(
    'sender',
    false,
    'Calls are nested too deeply.',
    'Flatten the work: at most 5 calls may wait for one another.',
    NOT_STARTED,
  ),
  NOT_OWNER: row(
    'policy',
    false,
    'Only the agent that sent the original may ask this.',
    'Ask as the original sender.',
    NOT_STARTED,
  ),

  // What a started handler ended with.
  HANDLER_ERROR: row(
    'tool',
    false,
    'The handler of the capability failed.',
    'The log of that agent has the reason under the same trace id.',
  ),
  INVALID_RESULT: row(
    'tool',
    false,
    'The handler returned something that is not acceptable data.',
    'Return plain JSON data that fits the output schema.',
  ),
  INVALID_OUTPUT: row(
    'receiver',
    false,
    'The answer does not fit the output schema of the contract.',
    'Use the contract that the other side uses.',
    LOCAL,
  ),
  CALLER_GONE: row('network', true, 'The caller was disconnected, so the work was ended.', 'Ask again.'),
  INTERNAL: row('receiver', false, 'The runtime made a mistake.', 'Report it with the trace id.'),
} as const satisfies Record<string, ErrorRow>

/** A code of the closed table. */
export type ErrorCode = keyof typeof ERROR_TABLE

/** Whether a string is a code of the table. */
export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === 'string' && Object.hasOwn(ERROR_TABLE, value)
}
