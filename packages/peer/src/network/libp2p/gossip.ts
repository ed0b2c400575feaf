import { createHash } from 'node:crypto'
import { HermesError } from '@hermes-peer/protocol'
import { type GossipSub, type GossipsubOpts, type TopicValidatorFn, TopicValidatorResult } from '@libp2p/gossipsub'
import type { Gossip, Verdict } from '../network.ts'
import type { GossipScore } from './gossip-score.ts'
import { countGossip } from './traffic.ts'

type Receive = (message: Gossip) => Verdict

const RESULT: Record<Verdict, TopicValidatorResult> = {
  accept: TopicValidatorResult.Accept,
  ignore: TopicValidatorResult.Ignore,
  reject: TopicValidatorResult.Reject,
}

/** Largest packet of gossipsub, which may carry many messages; it drops a neighbour that sends more. */
const MAX_PACKET_BYTES = 1024 * 1024
/** Bytes that wait for one slow neighbour; over it gossip to that one ends until it connects again. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024
/** What gossipsub may remember of one neighbour's topics: about 1 KiB each. */
const MAX_TOPIC_BYTES_PER_PEER = 256 * 1024

/** gossipsub's options, the same at every peer of a network. */
export function gossipOptions(score: GossipScore): Partial<GossipsubOpts> {
  return {
    // Messages are signed one layer above; a second signature per hop would cost more than all the rest.
    globalSignaturePolicy: 'StrictNoSign',
    msgIdFn: ({ data }) => createHash('sha256').update(data).digest(),
    allowPublishToZeroTopicPeers: true,
    ignoreDuplicatePublishError: true,
    fallbackToFloodsub: false,
    scoreParams: {
      // Many peers of one machine share an address, which is no sign of an attack here.
      IPColocationFactorWeight: 0,
      appSpecificScore: (peerId) => score.of(peerId),
      appSpecificWeight: 1,
    },
    maxInboundDataLength: MAX_PACKET_BYTES,
    maxOutboundBufferSize: MAX_WAITING_BYTES,
    maxTopicBytesPerPeer: MAX_TOPIC_BYTES_PER_PEER,
    // The defaults allow 5000 of each.
    decodeRpcLimits: {
      maxSubscriptions: 256,
      maxMessages: 256,
      maxIhaveMessageIDs: 1000,
      maxIwantMessageIDs: 1000,
      maxIdontwantMessageIDs: 256,
      maxControlMessages: 256,
      maxPeerInfos: 16,
    },
  }
}

export interface Topics {
  subscribe(topic: string, receive: Receive): () => void
  /** Resolves with the number of neighbours it went to. Throws `LIMIT_EXCEEDED`; `NOT_STARTED` while not attached. */
  publish(topic: string, data: Uint8Array): Promise<number>
  /** Lets a started gossipsub serve the topics; what was subscribed before joins now. */
  attach(service: GossipSub): void
  detach(): void
}

export interface TopicsOptions {
  /** Topics under this prefix may be published to without having been subscribed before. */
  prefix: string
  /** Largest message of a topic in bytes. */
  topicBytes(topic: string): number
  score: GossipScore
}

export function createTopics(options: TopicsOptions): Topics {
  return new JudgedTopics(options)
}

class JudgedTopics implements Topics {
  readonly #options: TopicsOptions
  /** Bounded by what this process subscribes to. */
  readonly #receivers = new Map<string, Set<Receive>>()
  #service: GossipSub | undefined

  constructor(options: TopicsOptions) {
    this.#options = options
  }

  subscribe(topic: string, receive: Receive): () => void {
    const receivers = this.#receivers.get(topic) ?? new Set()
    this.#receivers.set(topic, receivers)
    // Each subscription is its own, also when the same function is given twice.
    const own: Receive = (message) => receive(message)
    receivers.add(own)
    if (receivers.size === 1) this.#service?.subscribe(topic)
    return () => {
      if (!receivers.delete(own) || receivers.size > 0) return
      this.#receivers.delete(topic)
      this.#service?.unsubscribe(topic)
    }
  }

  async publish(topic: string, data: Uint8Array): Promise<number> {
    const limit = this.#options.topicBytes(topic)
    if (data.length > limit) {
      throw new HermesError('LIMIT_EXCEEDED', {
        message: `a message of ${data.length} bytes is over the ${limit} of topic ${topic}`,
        details: { size: data.length, limit },
      })
    }
    if (this.#service === undefined) throw new HermesError('NOT_STARTED')
    const { recipients } = await this.#service.publish(topic, data)
    return recipients.length
  }

  attach(service: GossipSub): void {
    this.#service = service
    const judge: TopicValidatorFn = (peer, { topic, data }) => this.#judge(topic, peer.toString(), data)
    service.topicValidators = new EveryTopic(judge)
    countGossip(service)
    restrictTopics(service, (topic) => topic.startsWith(this.#options.prefix) || this.#receivers.has(topic))
    for (const topic of this.#receivers.keys()) service.subscribe(topic)
  }

  detach(): void {
    this.#service = undefined
  }

  #judge(topic: string, from: string, data: Uint8Array): TopicValidatorResult {
    const verdict = data.length > this.#options.topicBytes(topic) ? 'reject' : this.#ask(topic, { from, data })
    if (verdict === 'reject') this.#options.score.rejected(from)
    return RESULT[verdict]
  }

  /** The strictest of all receivers' verdicts; what nobody here has subscribed to does not travel through this peer. */
  #ask(topic: string, message: Gossip): Verdict {
    const verdicts = [...(this.#receivers.get(topic) ?? [])].map((receive) => verdictOf(receive, message))
    if (verdicts.includes('reject')) return 'reject'
    return verdicts.length === 0 || verdicts.includes('ignore') ? 'ignore' : 'accept'
  }
}

/** A receiver that throws has judged nothing: the message stops here, and nobody is blamed. */
function verdictOf(receive: Receive, message: Gossip): Verdict {
  try {
    return receive(message)
  } catch {
    return 'ignore'
  }
}

/** gossipsub looks for a validator by topic and lets messages of topics without one pass; here each topic has the same. */
class EveryTopic extends Map<string, TopicValidatorFn> {
  readonly #judge: TopicValidatorFn

  constructor(judge: TopicValidatorFn) {
    super()
    this.#judge = judge
  }

  override get(): TopicValidatorFn {
    return this.#judge
  }
}

/**
 * gossipsub takes its list of allowed topics once, as a fixed set; the topics of a network are known by their prefix
 * only. Where the set is not where it used to be, the bound on topics per neighbour remains.
 */
function restrictTopics(service: GossipSub, allowed: (topic: string) => boolean): void {
  if (!('allowedTopics' in service)) return
  service.allowedTopics = { has: allowed }
}
