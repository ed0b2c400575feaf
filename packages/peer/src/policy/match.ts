import { isAgentId, isCapabilityName, isName, isReservedName } from '@hermes-peer/protocol'
import type { Membership } from '../identity/membership.ts'

/** An agent as rules see it: its id is proven by its key, team and roles are what trust knows of it. */
export interface Subject {
  readonly agentId: string
  readonly membership?: Membership | undefined
}

/** Whether a rule is about an agent; undefined: about nobody in particular, as those who listen to a topic are. */
export type PrincipalTest = (subject: Subject | undefined) => boolean

/** Undefined for what is no principal. */
export function principalTest(text: string): PrincipalTest | undefined {
  if (text === '*') return () => true
  const [kind, name] = split(text)
  if (kind === 'team') return isName(name) ? (subject) => subject?.membership?.team === name : undefined
  if (kind === 'role') return isName(name) ? (subject) => subject?.membership?.roles.includes(name) === true : undefined
  return isAgentId(text) ? (subject) => subject?.agentId === text : undefined
}

/** What a rule names: a whole name, or the beginning of names. */
export interface CapabilityPattern {
  readonly text: string
  readonly open: boolean
}

/** The one capability of the runtime that policy guards. */
const GUARDED = 'hermes.flight'

/** Whether policy judges it: of what every peer offers it does but one, the rest has guards of its own. */
export const isGoverned = (capability: string): boolean => !isReservedName(capability) || capability === GUARDED

/** A pattern, or why it is none. */
export function capabilityPattern(text: string): CapabilityPattern | { readonly fault: string } {
  const open = text.endsWith('*')
  const stem = open ? text.slice(0, -1) : text
  if (stem.includes('*')) return { fault: 'has a "*" that does not stand at its end' }
  const [kind, name] = split(stem)
  if (kind !== undefined && kind !== 'event' && kind !== 'topic') {
    return { fault: 'names no kind that there is: before ":" stands event or topic' }
  }
  const bare = kind === undefined ? stem : name
  if (kind === undefined && isReservedName(bare) && (open || bare !== GUARDED)) {
    return { fault: `cannot be allowed or denied: of hermes. only ${GUARDED} is judged by policy` }
  }
  // What a pattern begins with must be able to begin a name.
  const sound = open ? bare === '' || isStem(bare) : kind === 'topic' ? isName(bare) : isCapabilityName(bare)
  if (!sound)
    return { fault: 'is not the name of a capability, event:<name>, topic:<name>, or the beginning of one and "*"' }
  return { text: stem, open }
}

export function patternMatches({ text, open }: CapabilityPattern, capability: string): boolean {
  if (!open) return capability === text
  // An open pattern is about work; what the runtime itself offers is only ever meant by its whole name.
  return capability.startsWith(text) && !isReservedName(capability)
}

function split(text: string): readonly [kind: string | undefined, name: string] {
  const at = text.indexOf(':')
  return at < 0 ? [undefined, text] : [text.slice(0, at), text.slice(at + 1)]
}

const isStem = (text: string): boolean =>
  isCapabilityName(text) || isCapabilityName(`${text}0`) || isCapabilityName(`${text}2`)
