import type { Constraints } from '@hermes-peer/protocol'

/**
 * A policy as it is written, in YAML, in JSON, or as an object: who may use what here (`serve`), and what this agent may use of whom
 * (`call`). With a policy nothing may be served but what a rule allows; without `call` this agent may call whatever it can reach.
 *
 * A call is judged once for its originator and once for each agent that handed it on, and needs every one of them allowed. One of
 * them is allowed when
 * - no `deny` rule fires that names it and the capability, wherever that rule stands, and
 * - at least one `allow` rule names it and the capability, and all constraints of that rule hold of the parsed input.
 *
 * A `deny` rule fires unless one of its constraints is known not to hold: what is missing, of another type, or a list of which only
 * some elements comply, is denied by both kinds of rule.
 */
export interface PolicyDocument {
  /** Of this form. Default, and only one there is, 1. */
  readonly version?: 1
  /** `audit`: nothing is refused, and what would be is told as an event. Default `enforce`. */
  readonly mode?: 'enforce' | 'audit'
  /** Who may use what of this agent. Left out: nobody anything. */
  readonly serve?: readonly ServeRule[]
  /** What this agent may use, of whom. Left out: everything of everybody. */
  readonly call?: readonly CallRule[]
}

export interface CallRule {
  /**
   * Whom the rule is about: an agent id, `team:<name>`, `role:<name>`, or `*` for every agent that is admitted; or a list of
   * them. Under `serve` who calls, under `call` who is called.
   */
  readonly principal: string | readonly string[]
  /**
   * A capability by its whole name (`pay`, `pay@2`), an event to this agent (`event:<name>`), a topic (`topic:<name>`), the beginning of such
   * a name and `*`, or `*` alone; or a list of them. `hermes.flight` must be named; what else is called `hermes.` has guards of its own.
   */
  readonly capability: string | readonly string[]
  /** Default `allow`. */
  readonly effect?: 'allow' | 'deny'
  /** On the input by JSON pointer, on the data of events and topics. All must hold. */
  readonly constraints?: Constraints
}

export interface ServeRule extends CallRule {
  /**
   * Calls a second that one agent may begin by this rule, with as many at once after a pause; of an `allow` rule only. Each agent
   * has a count of its own, under the name that its key proves.
   *
   * A call counts for the first `allow` rule that names agent and capability, before its input is read, and for the one that
   * allows it in the end, if that is another.
   */
  readonly max_qps?: number
  /** Calls and tasks of one agent by this rule that may be under way at a time. */
  readonly max_concurrency?: number
}

/** Bounds of a policy. */
export const POLICY_LIMITS = {
  /** Bytes of a file. */
  bytes: 1024 * 1024,
  /** Rules of one side. */
  rules: 10_000,
  /** Principals, or capabilities, of one rule. */
  names: 256,
  qps: 1_000_000,
  concurrency: 1_000_000,
} as const
