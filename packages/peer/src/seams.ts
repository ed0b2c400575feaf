import type { PublicKey, SignedDocument, SigningKey } from '@hermes-peer/protocol'
import type { Clock } from './clock.ts'
import type { SendFilter } from './delivery/outbox.ts'
import type { EpochStore } from './identity/epoch.ts'
import type { KeyCheck } from './identity/key-check.ts'
import type { Trust } from './identity/trust.ts'
import type { Journal } from './journal/journal.ts'
import type { Network } from './network/network.ts'
import type { Settings } from './options.ts'
import type { Random } from './random.ts'

/** What a peer takes from outside: a real peer gets these from the machine, a simulated one from the test kit. */
export interface Seams {
  readonly clock: Clock
  readonly random: Random
  /** Admits public keys; peers of one test network share it, as the check is dear. */
  readonly keys: KeyCheck
  /** Everything that needs a disk or a socket; called once, by `start`. */
  open(settings: Settings, report: (text: string) => void): Promise<Opened>
  /** Share of time that the event loop was busy, 0..1, since the last call. */
  loopUtilization(): number
  /** Whole-envelope faults between outbox and link. */
  readonly sendFilter?: SendFilter
}

/** A key made elsewhere, and its certificates: paths of files as `certifyInstance` writes them. */
export interface InstanceFiles {
  identity: string
  certificate: string
}

/** What a rotation takes from outside. */
export interface RotationSeam {
  /** The agent key is at hand: a new key can be made here. */
  readonly alone: boolean
  /** The next key (that of the files, or a new one of that serial), stored before it is used, and a network for it that is not started. */
  next(
    serial: number,
    files?: InstanceFiles,
  ): Promise<{
    key: SigningKey
    certificates: readonly SignedDocument[]
    network: Network
    /** The node of the key before has stopped: what it held, as its ports, can be had now. */
    inherit?(): Promise<void>
  }>
}

export interface Opened {
  /** Signs for this agent, and is the key of its network. */
  readonly key: SigningKey
  /** The agent key, where `key` is that of an instance. Default: `key` is the agent key itself. */
  readonly agentKey?: PublicKey
  /** What is shown with `key`: certificates of an organisation, then that of the instance. Default none. */
  readonly certificates?: readonly SignedDocument[]
  /** The private agent key, where it is at hand: it revokes this agent's keys. */
  readonly agentSigner?: SigningKey
  /** Absent: this peer cannot change its key while it runs. */
  readonly rotation?: RotationSeam
  readonly epochs: EpochStore
  readonly trust: Trust
  readonly network: Network
  /** Not open yet: `start` opens it before anything is answered, `stop` closes it last. */
  readonly journal: Journal
  /** Further addresses to join through, read when the network is up. */
  neighbours(): readonly string[]
  /** Makes this peer findable for neighbours; returns the way to end that. */
  announce(addresses: readonly string[]): () => void
}
