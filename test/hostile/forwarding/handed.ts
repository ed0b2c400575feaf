import type { SignedHop } from '@hermes-peer/protocol'
import { capability, type HermesError } from 'hermes-peer'
import { z } from 'zod'
import { type Actor, actor } from '../actors.ts'
import { type Crafted, craft, type Draft } from '../craft.ts'
import { eventually } from '../eventually.ts'
import { chain, hopsBytes, type Step } from '../hops.ts'
import { hostileKey, otherKey, victimKey } from '../provider.ts'
import { capabilityEntry, dialLink, type Heard, manifestOf, type RawLink } from '../raw-link.ts'
import type { Scene } from '../scene.ts'
import type { Victim } from '../victim.ts'

export const originKey = actor('origin')
export const thirdKey = actor('third')

/** Long work that asks once, and gives back what it was answered. */
export const job = capability('job', {
  description: 'Asks, and says what it was told.',
  input: z.any(),
  output: z.any(),
  asks: { question: z.string(), answer: z.any() },
  effects: 'once',
})

export const direct: Step = { by: hostileKey, next: 'victim' }
export const isAnswer = ({ header }: Heard): boolean => header.in_reply_to !== undefined
export const taskOf = ({ messageId }: Crafted): string => `task_${messageId.slice('msg_'.length)}`

export const SUBMIT: Draft = {
  message_type: 'submit',
  call_type: 'task',
  target_capability: 'job',
  recipient_epoch: 0,
  payload: { input: 1 },
}

/** An envelope of the originator (or another) that was handed on by these steps. */
export function handed(
  steps: readonly Step[],
  draft: Draft,
  { self = originKey, change = (hops) => hops }: { self?: Actor; change?: (hops: SignedHop[]) => SignedHop[] } = {},
): Crafted {
  const first = steps[0]?.by.agentId ?? 'hostile'
  const from = { self, to: first, toEpoch: 1, epoch: Date.now(), sequence: 1 }
  return craft(from, { ...draft, hops: (leaf) => hopsBytes(change(chain(leaf, steps))) })
}

export const ask = (capability: string, input: object): Draft => ({ target_capability: capability, payload: { input } })

/** A victim that works on what is handed on to it, and the neighbour by whom it comes. */
export interface Holder {
  readonly victim: Victim
  readonly link: RawLink
  /** Who each handler was started for. */
  readonly started: { caller: string; via: readonly string[]; signal: AbortSignal }[]
  /** Sends it, and gives the answer that comes back along the hop. */
  told(sent: Crafted): Promise<Heard>
  /** A task of the originator that waits for the answer to its question. */
  begun(): Promise<{ submit: Crafted; taskId: string }>
}

export async function holder(
  world: Scene,
  allow: readonly Actor[] = [hostileKey, originKey, thirdKey],
): Promise<Holder> {
  const started: Holder['started'] = []
  const victim = await world.peer({
    as: victimKey,
    allow,
    prepare: (peer) =>
      peer.provide(job, async (_, ctx) => {
        started.push({ caller: ctx.caller, via: ctx.via, signal: ctx.signal })
        return ctx.ask('go on?')
      }),
  })
  const others = { origin: manifestOf(originKey), third: manifestOf(thirdKey), other: manifestOf(otherKey) }
  const link = await dialLink(await world.raw(hostileKey), hostileKey, victim.address, { others })
  victim.mark()
  const told = (sent: Crafted): Promise<Heard> => {
    link.stream.send(sent.frame)
    return link.answerTo(sent)
  }
  return {
    victim,
    link,
    started,
    told,
    async begun() {
      const before = started.length
      const submit = handed([direct], SUBMIT)
      await told(submit)
      await eventually(() => started.length > before, 'the handler')
      return { submit, taskId: taskOf(submit) }
    },
  }
}

/** What becomes of a frame: the code that it is refused with, or the type of what it was answered with. */
export async function fate({ victim, link }: Pick<Holder, 'victim' | 'link'>, sent: Crafted): Promise<string> {
  victim.mark()
  link.stream.send(sent.frame)
  return eventually(() => {
    const [refused] = victim.of('envelope.refused')
    if (refused) return refused.code
    const answer = link.heard.find(({ header }) => header.in_reply_to === sent.leaf)
    if (!answer) return undefined
    const { message_type } = answer.header
    return message_type === 'error' ? (answer.payload.error_code as string) : message_type
  }, 'an answer, or a refusal')
}

/** origin → victim, whose handler hands on to hostile, and another neighbour of the victim. */
export async function middle(world: Scene) {
  const ended: string[] = []
  const victim = await world.peer({
    as: victimKey,
    allow: [originKey, hostileKey, otherKey, thirdKey],
    tuning: { resendMs: 200, resendCapMs: 200 },
    prepare: (peer) =>
      peer.provide(job, async (_, ctx) => {
        try {
          return await ctx.forward('hostile')
        } catch (error) {
          ended.push((error as HermesError).code)
          throw error
        }
      }),
  })
  const origin = await dialLink(await world.raw(originKey), originKey, victim.address)
  const other = await dialLink(await world.raw(otherKey), otherKey, victim.address)
  const next = await dialLink(await world.raw(hostileKey), hostileKey, victim.address, {
    capabilities: [capabilityEntry('job', { effects: 'once' })],
    others: { third: manifestOf(thirdKey) },
  })
  await victim.until('directory.changed', ({ agentId }) => agentId === 'hostile')
  victim.mark()
  const submit = origin.send(SUBMIT)
  const heard = await next.next(({ header }) => header.message_type === 'submit')
  const taskId = taskOf(submit)
  const ack: Draft = {
    message_type: 'ack',
    recipient: { agent_id: 'origin' },
    payload: { status: 'stored', task_id: taskId },
  }
  return {
    victim,
    origin,
    other,
    next,
    submit,
    heard,
    taskId,
    ack,
    ended,
    /** The next agent says that it has stored it. */
    async take() {
      next.answer(heard, null, ack)
      await victim.until('task.handed')
    },
    watch: (after = 0) => origin.request('hermes.task.watch', { task_id: taskId, after }, { ordered: false }),
  }
}
