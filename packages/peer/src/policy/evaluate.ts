import { judgeConstraint, judgeConstraints } from '@hermes-peer/protocol'
import { isGoverned, patternMatches, type Subject } from './match.ts'
import type { Policy, Rule } from './read.ts'

/** What a policy is asked. */
export interface PolicyRequest {
  /** `serve`: whether all of `subjects` may use it here. `call`: whether this agent may use it of them. */
  readonly side: 'serve' | 'call'
  /** The originator, then each agent that handed it on; under `call` the one that is asked, none for a topic. */
  readonly subjects: readonly Subject[]
  /** A capability, `event:<name>` or `topic:<name>`. */
  readonly capability: string
  /** The parsed input. Left out: judged by shape alone, that is whether any input could be allowed. */
  readonly input?: { readonly value: unknown }
}

/** The answer, with what decided it. */
export interface PolicyDecision {
  readonly allowed: boolean
  /** The rule that decided; undefined where no rule is about it. */
  readonly rule: Rule | undefined
  /** Whom it was decided for: the first that is denied, else the originator. */
  readonly subject: Subject | undefined
  readonly because: 'allowed' | 'denied' | 'constraint' | 'no rule' | 'not judged' | 'delegation'
  /** With `constraint`: the pointer that the first allow rule about it failed at. */
  readonly pointer?: string
}

const NOT_JUDGED: PolicyDecision = { allowed: true, rule: undefined, subject: undefined, because: 'not judged' }

/** Judges a request by a policy. Pure: the same policy and request give the same decision. */
export function evaluate(policy: Policy, request: PolicyRequest): PolicyDecision {
  const { side, subjects, capability, input } = request
  const rules = side === 'serve' ? policy.serve : policy.call
  if (rules === undefined || !isGoverned(capability)) return NOT_JUDGED
  const about = rules.filter(({ capabilities }) => capabilities.some((one) => patternMatches(one, capability)))
  return judgeAll(about, subjects, input)
}

/** The same with the rules about that capability, in their order. */
export function judgeAll(
  about: readonly Rule[],
  subjects: readonly (Subject | undefined)[],
  input: PolicyRequest['input'],
): PolicyDecision {
  let first: PolicyDecision | undefined
  for (const subject of subjects.length === 0 ? [undefined] : subjects) {
    const decision = judgeOne(about, subject, input)
    if (!decision.allowed) return decision
    first ??= decision
  }
  return first as PolicyDecision
}

/** Whether a rule is about an agent. */
export const names = ({ principals }: Rule, subject: Subject | undefined): boolean =>
  principals.some((test) => test(subject))

function judgeOne(about: readonly Rule[], subject: Subject | undefined, input: PolicyRequest['input']): PolicyDecision {
  let allowing: Rule | undefined
  let failing: Rule | undefined
  for (const rule of about) {
    if (!names(rule, subject)) continue
    const { effect, constraints } = rule
    if (effect === 'deny') {
      // By shape only what is denied whatever the input is.
      const fires = input ? judgeConstraints(constraints, input.value) !== 'no' : constraints.length === 0
      if (fires) return { allowed: false, rule, subject, because: 'denied' }
    } else if (!allowing) {
      if (!input || judgeConstraints(constraints, input.value) === 'yes') allowing = rule
      else failing ??= rule
    }
  }
  if (allowing) return { allowed: true, rule: allowing, subject, because: 'allowed' }
  if (!failing) return { allowed: false, rule: undefined, subject, because: 'no rule' }
  const failed = failing.constraints.find((one) => judgeConstraint(one, input?.value) !== 'yes')
  return { allowed: false, rule: failing, subject, because: 'constraint', pointer: failed?.pointer ?? '' }
}
