import { judgeConstraint, type PlacedConstraint } from '@hermes-peer/protocol'
import { evaluate, names, type PolicyDecision, type PolicyRequest } from './evaluate.ts'
import { patternMatches, type Subject } from './match.ts'
import type { Policy, Rule } from './read.ts'

/**
 * A decision in words: the first line is the decision, then one line for each agent that it is judged for, and below it one for each
 * rule about agent and capability, in the order of the file, with what its constraints found. For operators: it names rules.
 */
export function explainPolicy(policy: Policy, request: PolicyRequest): string {
  const { side, subjects, capability } = request
  const decision = evaluate(policy, request)
  const lines = [verdictLine(decision, policy, capability)]
  const rules = policy[side]
  if (decision.because === 'not judged' || rules === undefined) return lines.join('\n')
  const about = rules.filter(({ capabilities }) => capabilities.some((one) => patternMatches(one, capability)))
  for (const subject of subjects.length === 0 ? [undefined] : subjects) {
    const own = about.filter((rule) => names(rule, subject))
    lines.push(`${subjectText(subject)}: ${own.length === 0 ? 'no rule' : `${own.length} rules`} about ${capability}`)
    for (const rule of own) lines.push(`  ${ruleLine(rule, request.input)}`)
  }
  return lines.join('\n')
}

function verdictLine({ allowed, rule, subject, because, pointer }: PolicyDecision, policy: Policy, capability: string) {
  if (because === 'not judged') return `✓ ${capability} is not judged by ${policy.source}`
  const where = rule?.at ?? policy.source
  const audit = policy.mode === 'audit' && !allowed ? ' (audit: it is let through)' : ''
  if (allowed) return `✓ ${capability} allowed, ${where}`
  const why = {
    'no rule': `no rule allows it to ${subjectText(subject)}`,
    constraint: `${subjectText(subject)} is allowed it, but not with this input: ${place(pointer ?? '')}`,
    denied: `a rule denies it to ${subjectText(subject)}`,
  }[because as 'no rule' | 'constraint' | 'denied']
  return `✗ ${capability} denied, ${where}: ${why}${audit}`
}

function ruleLine({ at, effect, constraints }: Rule, input: PolicyRequest['input']): string {
  if (constraints.length === 0) return `${at} ${effect} whatever the input is`
  const found = constraints.map(
    (one) => `${place(one.pointer)} ${input ? findingOf(one, input.value, effect) : 'not looked at'}`,
  )
  return `${at} ${effect} if ${found.join(', ')}`
}

function findingOf(one: PlacedConstraint, value: unknown, effect: Rule['effect']): string {
  const finding = judgeConstraint(one, value)
  if (finding !== 'unknown') return finding === 'yes' ? 'holds' : 'does not hold'
  return `cannot be told (missing, of another type, or a mixed list): ${effect === 'deny' ? 'counts as holding' : 'counts as not holding'}`
}

const place = (pointer: string): string => (pointer === '' ? 'the input' : pointer)

function subjectText(subject: Subject | undefined): string {
  if (!subject) return 'whoever listens'
  const { team, roles = [] } = subject.membership ?? {}
  const known = [...(team === undefined ? [] : [`team:${team}`]), ...roles.map((role) => `role:${role}`)]
  return known.length === 0 ? subject.agentId : `${subject.agentId} (${known.join(', ')})`
}
