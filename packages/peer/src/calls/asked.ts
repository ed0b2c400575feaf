import type { Header } from '@hermes-peer/protocol'
import type { Asked } from '../policy/guard.ts'

interface Came extends Pick<Asked, 'from' | 'via'> {
  readonly header: Asked['header'] & Pick<Header, 'message_type' | 'target_capability'>
}

/** What came, as policy sees it: an event has a name of its own kind, which no rule on a capability of that name means. */
export function askedOf({ from, via, header }: Came): Asked {
  const name = header.target_capability as string
  return { from, via, header, capability: header.message_type === 'event' ? `event:${name}` : name }
}
