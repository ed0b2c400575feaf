import { createPeer, type Peer } from 'hermes-peer'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { placesOf } from './contracts.ts'
import { type AgentProcess, createFleet, eventually, type Fleet } from './fleet.ts'

const work = placesOf()
const PLACES: Readonly<Record<string, number>> = { one: 2, two: 4, four: 8 }
/** 14 places of 60 ms: 140 calls a second fill 60 % of them. */
const MS = 60
const PER_SECOND = 140

let fleet: Fleet
const callers: Peer[] = []
const agents = new Map<string, AgentProcess>()
const answers: { readonly by: string; readonly running: number; readonly at: number }[] = []
const failures: unknown[] = []

beforeAll(async () => {
  fleet = await createFleet()
  for (const agentId of ['x', 'y', 'z']) {
    const bootstrap = callers[0]?.addresses ?? []
    callers.push(await createPeer({ agentId, folder: fleet.folder, bootstrap, journal: false }).start())
  }
  for (const [agentId, places] of Object.entries(PLACES)) await launch(agentId, places)
}, 60_000)

afterAll(async () => {
  for (const caller of callers) await caller.stop()
  await fleet?.stop()
})

async function launch(agentId: string, places: number): Promise<void> {
  const agent = fleet.launch(agentId, { bootstrap: callers[0]?.addresses ?? [], places })
  agents.set(agentId, agent)
  await agent.ready()
  for (const caller of callers) {
    await eventually(
      async () => (await caller.find({ capability: work.name })).some((one) => one.agentId === agentId && one.usable),
      20_000,
    )
  }
}

/** Open loop, as users call: whatever comes back, the next one leaves when it is due. */
async function drive(perSecond: number, count: number): Promise<void> {
  const begun = performance.now()
  const open: Promise<void>[] = []
  for (let sent = 0; sent < count; sent++) {
    const due = begun + (sent * 1000) / perSecond
    if (due > performance.now()) await new Promise((resolve) => setTimeout(resolve, due - performance.now()))
    const call = (callers[sent % callers.length] as Peer).call(work, { ms: MS * (0.5 + Math.random()) })
    open.push(
      call.then(
        ({ by, running }) => void answers.push({ by, running, at: performance.now() }),
        (error: unknown) => void failures.push(error),
      ),
    )
  }
  await Promise.all(open)
}

function shares(from: number): Record<string, number> {
  const counted = answers.slice(from)
  const found: Record<string, number> = {}
  for (const { by } of counted) found[by] = (found[by] ?? 0) + 1 / counted.length
  return found
}
const percent = (found: Record<string, number>) =>
  Object.entries(found)
    .map(([name, share]) => `${name} ${(share * 100).toFixed(1)} %`)
    .sort()
    .join(', ')

test('real providers of capacity 1 : 2 : 4 get their shares; a killed one none; a newcomer little', {
  timeout: 90_000,
}, async () => {
  await drive(PER_SECOND, 500)
  const warm = answers.length
  await drive(PER_SECOND, 900)
  const before = shares(warm)
  console.log(`ideal one 14.3 %, two 28.6 %, four 57.1 %; found ${percent(before)}`)

  agents.get('two')?.kill('SIGKILL')
  const killed = performance.now()
  await drive(PER_SECOND / 2, 210)
  const late = answers.filter(({ at }) => at > killed + 1000 + 1.5 * MS)
  const moved = late.filter(({ by }) => by === 'two').length
  console.log(`a second after the kill ${moved} of ${late.length} calls went to the killed one`)

  await launch('new', 8)
  const joined = answers.length
  await drive(PER_SECOND / 2, 150)
  const after = shares(joined)
  console.log(`with a newcomer: ${percent(after)}`)

  expect(failures).toEqual([])
  // No more handlers at once than it has places, whoever calls.
  for (const { by, running } of answers) expect(running, by).toBeLessThanOrEqual(PLACES[by] ?? 8)
  expect(late.length).toBeGreaterThan(50)
  expect(moved).toBe(0)
  // How busy the machine is counts as load, so that other work on it shifts the shares, which are held to their bounds in virtual
  // time; what no other work shifts is who has more places gets more.
  expect(before.four ?? 0, percent(before)).toBeGreaterThan(before.one ?? 0)
  for (const name of Object.keys(PLACES)) expect(before[name] ?? 0, `${name}: ${percent(before)}`).toBeGreaterThan(0)
  expect(after.new ?? 0).toBeLessThan(0.2)
})
