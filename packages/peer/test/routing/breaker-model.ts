import { type ManualClock, manualClock } from '@hermes-peer/testkit'
import fc from 'fast-check'
import { DEFAULTS } from '../../src/defaults.ts'
import { type Breaker, type CallEnd, createBreaker } from '../../src/routing/breaker.ts'
import { createTelemetry } from '../../src/telemetry/telemetry.ts'

export function breaking(tuning: Partial<Record<keyof typeof DEFAULTS, number>> = {}, clock = manualClock()) {
  const telemetry = createTelemetry({ clock })
  const events: { type: string; because?: string }[] = []
  telemetry.events.onAny((event) => events.push(event as never))
  const closed: string[] = []
  const breaker = createBreaker({
    clock,
    tunables: { ...DEFAULTS, ...tuning },
    telemetry,
    closed: (agentId, capability) => closed.push(`${agentId}#${capability}`),
  })
  return { clock, breaker, events, closed }
}

export type Step =
  | { begin: string }
  | { end: number; verdict: CallEnd['verdict']; event?: string | undefined }
  | { wait: number }

export const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: fc.record({ begin: fc.constantFrom('a', 'a', 'a', 'b') }) },
    {
      weight: 5,
      arbitrary: fc.record({
        end: fc.nat(6),
        verdict: fc.oneof(
          { weight: 7, arbitrary: fc.constant('failed' as const) },
          { weight: 2, arbitrary: fc.constant('well' as const) },
          { weight: 1, arbitrary: fc.constant('nothing' as const) },
        ),
        event: fc.oneof({ weight: 9, arbitrary: fc.constant(undefined) }, fc.constantFrom('link1', 'link2')),
      }),
    },
    { weight: 1, arbitrary: fc.record({ wait: fc.constantFrom(1, 400, 999, 1000, 9999, 10_000, 10_000, 31_000) }) },
  ),
  { minLength: 40, maxLength: 200, size: 'max' },
)

/** The rule, kept as a plain history: no ring, no counters. */
class Model {
  state: 'closed' | 'open' | 'half-open' = 'closed'
  openedAt = 0
  probe: object | undefined
  calls = new Map<object, number>()
  turn = 0
  row = 0
  lastEvent: string | undefined
  history: { bucket: number; failed: boolean }[] = []

  time(now: number): void {
    if (this.state !== 'open' || now - this.openedAt < 10_000) return
    this.state = 'half-open'
    this.turn++
  }

  lets(now: number): boolean {
    this.time(now)
    return this.state === 'closed' || (this.state === 'half-open' && this.probe === undefined)
  }

  begin(): object {
    const call = {}
    if (this.state === 'half-open') this.probe = call
    this.calls.set(call, this.turn)
    return call
  }

  end(call: object, { verdict, event }: CallEnd, now: number): void {
    if (this.calls.get(call) !== this.turn) return
    if (this.probe === call) {
      this.probe = undefined
      if (verdict === 'well') this.change('closed', now)
      else if (verdict === 'failed') this.change('open', now)
      return
    }
    if (verdict === 'nothing') return
    const failed = verdict === 'failed'
    if (failed && event !== undefined) {
      if (event === this.lastEvent) return
      this.lastEvent = event
    }
    this.row = failed ? this.row + 1 : 0
    const bucket = Math.floor(now / 1000)
    this.history.push({ bucket, failed })
    const recent = this.history.filter((one) => one.bucket > bucket - 30)
    const share = recent.filter((one) => one.failed).length / recent.length
    if (this.row >= 5 || (recent.length >= 20 && share >= 0.5)) this.change('open', now)
  }

  change(state: 'closed' | 'open', now: number): void {
    this.state = state
    this.turn++
    this.probe = undefined
    this.row = 0
    this.history = []
    if (state === 'open') this.openedAt = now
    else this.lastEvent = undefined
  }
}

/** Runs the steps on a breaker beside the model; throws where they differ. */
export async function follow(
  list: readonly Step[],
  make: (clock: ManualClock) => Breaker = (clock) => breaking({}, clock).breaker,
): Promise<{ opened: number; probes: number }> {
  const clock = manualClock()
  const breaker = make(clock)
  const models = new Map([
    ['a', new Model()],
    ['b', new Model()],
  ])
  const running: { model: Model; call: object; tell: (end: CallEnd) => void }[] = []
  const seen = { opened: 0, probes: 0 }
  for (const [index, step] of list.entries()) {
    const now = clock.monotonic()
    const where = `step ${index} of ${JSON.stringify(list)}`
    if ('wait' in step) await clock.timeline.advance(step.wait)
    else if ('begin' in step) {
      const model = models.get(step.begin) as Model
      const lets = model.lets(now)
      const tell = breaker.begin(step.begin, 'work')
      if (lets !== (tell !== undefined)) throw new Error(`${tell ? 'let through' : 'kept out'} at ${where}`)
      if (!tell) continue
      if (model.state === 'half-open') seen.probes++
      running.push({ model, call: model.begin(), tell })
    } else {
      const [one] = running.splice(step.end % Math.max(1, running.length), 1)
      if (!one) continue
      one.model.time(now)
      const before = one.model.state
      one.model.end(one.call, step, now)
      if (before !== 'open' && one.model.state === 'open') seen.opened++
      one.tell(step)
    }
    for (const [agentId, model] of models) {
      model.time(clock.monotonic())
      const read = breaker.read(agentId, 'work')
      if (read.state !== model.state) throw new Error(`${read.state} is not ${model.state} after ${where}`)
      if (read.state === 'half-open' && read.probing !== (model.probe !== undefined))
        throw new Error(`probing is ${read.probing} after ${where}`)
    }
  }
  return seen
}
