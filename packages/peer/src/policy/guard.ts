import { type Header, HermesError } from '@hermes-peer/protocol'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../clock.ts'
import type { Trust } from '../identity/trust.ts'
import type { Telemetry } from '../telemetry/events.ts'
import { covers, type DelegateOptions, type Delegation, type Delegations, holdsFor, type Lent } from './delegations.ts'
import { judgeAll, names, type PolicyDecision } from './evaluate.ts'
import { createLimits, type Use } from './limits.ts'
import { isGoverned, patternMatches, type Subject } from './match.ts'
import type { Policy, Rule } from './read.ts'

/** Work that somebody asks for, as policy sees it. */
export interface Asked {
  /** The authenticated sender. */
  readonly from: string
  /** The agents that handed it on. */
  readonly via: readonly string[]
  /** A capability, `event:<name>` or `topic:<name>`. */
  readonly capability: string
  readonly header: Pick<Header, 'message_id' | 'correlation_id' | 'trace_id'> & Partial<Pick<Header, 'delegation'>>
}

/** Authority that came with a call for this agent to use, and the way to pass on what it likes of it. */
export interface Lending {
  readonly delegation: Delegation
  /** Throws `INVALID_OPTION`, `INVALID_NAME`. */
  passOn(options: DelegateOptions): Delegation
}

/** One piece of work, from the judgement by its shape to its end. */
export interface Admission {
  /**
   * Judges the parsed, frozen input; `context` is that of the payload, which holds the delegation that the header names. Throws
   * `POLICY_DENIED`, `QUOTA_EXCEEDED`, `DELEGATION_REFUSED`.
   */
  judge(input: unknown, context?: unknown): void
  /** What the caller lends this agent with the call; known once it is judged. */
  readonly lent: Lending | undefined
  /** It is over, however it ended: its place is free. */
  leave(): void
}

/** What policy says of work that others ask for. */
export interface ServeGuard {
  /** Throws `POLICY_DENIED` when no input could be allowed. Takes nothing. */
  shape(asked: Asked): void
  /** The same, and takes of its quota. Throws `QUOTA_EXCEEDED` too. */
  admit(asked: Asked): Admission
  /**
   * Work that was admitted at `at` (wall clock, ms), and is about to start: judged again, as the policy may have changed. Gives what it
   * lends this agent. Throws `POLICY_DENIED`.
   */
  again(asked: Asked, input: unknown, how: { readonly context: unknown; readonly at: number }): Lending | undefined
  /** Work that an earlier life has admitted: takes its place. */
  resume(asked: Asked): Admission
}

/** What policy says of what this agent asks others for. */
export interface CallGuard {
  /**
   * The rule that forbids it, as `denied, policy.yaml:14`; undefined where it is allowed. `agentId` undefined: it is for everyone who
   * listens. `input` left out: whether any could be allowed.
   */
  denies(agentId: string | undefined, capability: string, input?: { readonly value: unknown }): string | undefined
  /** Whether what it says can depend on the input. */
  readonly looksAtInput: boolean
}

export interface PolicyGuard {
  readonly serve: ServeGuard
  readonly call: CallGuard
  /** One sentence for the operator. */
  describe(): string
}

const PASSED: Admission = { judge: () => undefined, lent: undefined, leave: () => undefined }

/** Without a policy every admitted agent may use every capability. */
export const NO_POLICY: PolicyGuard = {
  serve: { shape: () => undefined, admit: () => PASSED, again: () => undefined, resume: () => PASSED },
  call: { denies: () => undefined, looksAtInput: false },
  describe: () => 'no policy: every admitted agent may use every capability',
}

export interface PolicyGuardOptions {
  /** The rules that count now. */
  current(): Policy
  readonly trust: Pick<Trust, 'membership'>
  readonly delegations: Delegations
  readonly clock: Clock
  readonly telemetry: Telemetry
  /** Counts kept of who uses what. */
  readonly counts: number
}

/** By shape, of work whose authority is still to be read. */
const UNDECIDED: PolicyDecision = { allowed: true, rule: undefined, subject: undefined, because: 'not judged' }

/** Capabilities for which the rules about them are remembered. */
const MOST_REMEMBERED = 1000

export function createPolicyGuard({
  current,
  trust,
  delegations,
  clock,
  telemetry,
  counts,
}: PolicyGuardOptions): PolicyGuard {
  const limits = createLimits({ clock, most: counts })
  let indexed = current()
  const remembered = {
    serve: rememberedRules(),
    call: rememberedRules(),
  }

  const policyNow = (): Policy => {
    const policy = current()
    if (policy !== indexed) {
      indexed = policy
      remembered.serve.clear()
      remembered.call.clear()
    }
    return policy
  }
  const about = (policy: Policy, side: 'serve' | 'call', capability: string): readonly Rule[] => {
    const known = remembered[side].get(capability)
    if (known) return known
    const rules = policy[side]?.filter(({ capabilities }) =>
      capabilities.some((one) => patternMatches(one, capability)),
    )
    remembered[side].set(capability, rules ?? [])
    return rules ?? []
  }

  const subject = (agentId: string): Subject => ({ agentId, membership: trust.membership?.(agentId) })

  const tell = (asked: Asked, decision: PolicyDecision, policy: Policy, code?: string): void => {
    if (!telemetry.wants('policy.decided')) return
    const { header, from, via, capability } = asked
    telemetry.emit('policy.decided', {
      messageId: header.message_id,
      correlationId: header.correlation_id,
      traceId: header.trace_id,
      side: 'serve',
      from,
      via,
      capability,
      ...outcomeOf(decision, policy, code),
    })
  }

  class Judged implements Admission {
    readonly #asked: Asked
    /** Those of whom each must be allowed, and those who only must not be denied. */
    #subjects: readonly Subject[]
    #between: readonly Subject[] = []
    lent: Lending | undefined
    /** What it counts for already. */
    #uses: readonly Use[] = []
    #leave: (() => void)[] = []

    constructor(asked: Asked) {
      this.#asked = asked
      this.#subjects = [asked.from, ...asked.via].map(subject)
      // Whose authority it comes with is known once its payload is read.
      if (asked.header.delegation === undefined) return
      this.#between = this.#subjects.slice(0, 1)
      this.#subjects = this.#subjects.slice(1)
    }

    shape(): void {
      this.#decide(undefined)
    }

    /** Counts for the first rules about it, whatever its input will be. */
    enter(how: 'enter' | 'resume'): void {
      const policy = policyNow()
      const rules = about(policy, 'serve', this.#asked.capability)
      const uses = this.#subjects.flatMap((one) => {
        const rule = rules.find((each) => each.effect === 'allow' && names(each, one))
        return rule ? [{ agentId: one.agentId, rule }] : []
      })
      if (how === 'resume') this.#leave.push(limits.resume(uses))
      else this.#count(uses, policy)
    }

    judge(input: unknown, context?: unknown): void {
      this.#borrow(input, context)
      const policy = policyNow()
      const decision = this.#decide({ value: input })
      const rules = about(policy, 'serve', this.#asked.capability)
      if (decision.allowed) {
        const uses = this.#subjects.flatMap((one, index) => {
          const { rule } = index === 0 ? decision : judgeAll(rules, [one], { value: input })
          return rule ? [{ agentId: one.agentId, rule }] : []
        })
        const known = (use: Use) => this.#uses.some(({ agentId, rule }) => agentId === use.agentId && rule === use.rule)
        this.#count(
          uses.filter((use) => !known(use)),
          policy,
        )
      }
      tell(this.#asked, decision, policy)
    }

    /** Without taking anything. */
    again(input: unknown, { context, at }: { context: unknown; at: number }): void {
      this.#borrow(input, context, at)
      this.#decide({ value: input })
    }

    /** Puts the one whose authority is lent in the place of the caller, as far as that is lent. */
    #borrow(input: unknown, context: unknown, at?: number): void {
      if (this.#asked.header.delegation === undefined) return
      try {
        this.#lent(input, delegations.open(this.#asked.from, this.#asked.header.delegation, context, at))
      } catch (error) {
        const caller = subject(this.#asked.from)
        tell(this.#asked, { allowed: false, rule: undefined, subject: caller, because: 'delegation' }, policyNow())
        throw error
      }
    }

    #lent(input: unknown, lent: Lent): void {
      const { from, via, capability } = this.#asked
      if (lent.how === 'handed') {
        const { delegation } = lent
        this.lent = { delegation, passOn: (options) => delegations.make(options, delegation) }
        this.#subjects = [from, ...via].map(subject)
        this.#between = []
        return
      }
      const { links } = lent
      if (!covers(links, capability) || !holdsFor(links, input)) {
        throw new HermesError('DELEGATION_REFUSED', {
          message: `the delegation does not hold for ${capability}${covers(links, capability) ? ' with this input' : ''}`,
        })
      }
      const root = links[0]?.from as string
      this.#subjects = [root, ...via].map(subject)
      this.#between = links.map(({ to }) => subject(to))
    }

    leave(): void {
      for (const leave of this.#leave.splice(0)) leave()
    }

    #decide(input: { readonly value: unknown } | undefined): PolicyDecision {
      const policy = policyNow()
      const { capability } = this.#asked
      const rules = about(policy, 'serve', capability)
      const denials = this.#between.length === 0 ? [] : rules.filter(({ effect }) => effect === 'deny')
      const decision =
        this.#between.map((one) => judgeAll(denials, [one], input)).find(({ because }) => because === 'denied') ??
        (this.#subjects.length === 0 ? UNDECIDED : judgeAll(rules, this.#subjects, input))
      if (decision.allowed) return decision
      if (policy.mode === 'audit') return decision
      tell(this.#asked, decision, policy)
      throw new HermesError('POLICY_DENIED', {
        message: input
          ? `${capability} is not allowed here with this input`
          : `${capability} is not allowed here${this.#asked.via.length > 0 ? ' by this way' : ''}`,
      })
    }

    #count(uses: readonly Use[], policy: Policy): void {
      if (uses.length === 0) return
      const entered = limits.enter(uses)
      if (typeof entered === 'function') {
        this.#leave.push(entered)
        this.#uses = [...this.#uses, ...uses]
        return
      }
      const rule = uses[0]?.rule
      tell(this.#asked, { allowed: false, rule, subject: this.#subjects[0], because: 'denied' }, policy, entered.code)
      if (policy.mode === 'audit') return
      this.leave()
      throw entered
    }
  }

  return {
    serve: {
      shape(asked) {
        if (isGoverned(asked.capability)) new Judged(asked).shape()
      },
      admit(asked) {
        if (!isGoverned(asked.capability)) return PASSED
        const judged = new Judged(asked)
        judged.shape()
        judged.enter('enter')
        return judged
      },
      again(asked, input, how) {
        if (!isGoverned(asked.capability)) return undefined
        const judged = new Judged(asked)
        judged.again(input, how)
        return judged.lent
      },
      resume(asked) {
        if (!isGoverned(asked.capability)) return PASSED
        const judged = new Judged(asked)
        judged.enter('resume')
        return judged
      },
    },
    call: {
      denies(agentId, capability, input) {
        const policy = policyNow()
        if (!policy.call || !isGoverned(capability)) return undefined
        const subjects = agentId === undefined ? [] : [subject(agentId)]
        const decision = judgeAll(about(policy, 'call', capability), subjects, input)
        if (decision.allowed) return undefined
        if (telemetry.wants('policy.decided')) {
          const told = outcomeOf(decision, policy)
          telemetry.emit('policy.decided', { side: 'call', to: agentId, capability, ...told })
        }
        return policy.mode === 'audit' ? undefined : `denied, ${decision.rule?.at ?? `no rule in ${policy.source}`}`
      },
      get looksAtInput() {
        return policyNow().call?.some(({ constraints }) => constraints.length > 0) === true
      },
    },
    describe() {
      const { source, serve, call, mode } = policyNow()
      const calls = call
        ? `${call.length} rules on what this agent may call`
        : 'this agent may call whatever it can reach'
      const audit = mode === 'audit' ? '; audit: nothing is refused' : ''
      return `policy ${source}: ${serve.length} rules on who may use what here, all else is denied; ${calls}${audit}`
    },
  }
}

const rememberedRules = () =>
  new LRUCache<string, readonly Rule[]>({ maxSize: MOST_REMEMBERED, sizeCalculation: () => 1 })

function outcomeOf({ allowed, rule, subject, because, pointer }: PolicyDecision, policy: Policy, code?: string) {
  return {
    effect: allowed ? ('allow' as const) : ('deny' as const),
    rule: rule?.at ?? policy.source,
    because: code === undefined ? because : ('quota' as const),
    ...(subject === undefined ? {} : { subject: subject.agentId }),
    ...(pointer === undefined ? {} : { pointer }),
    audit: policy.mode === 'audit' && because !== 'delegation',
  }
}
