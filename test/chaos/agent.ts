import { openSync, readFileSync, writeSync } from 'node:fs'
import { createPeer, HermesError, type TaskHandle } from 'hermes-peer'
import { type AgentOptions, CONTRACTS, type Effects, type LogLine, type Order, type State } from './contracts.ts'

/** One agent that gives tasks to the others and takes theirs; killed at any time, and started again over the same files. */
const options = JSON.parse(process.argv[2] as string) as AgentOptions
const { agentId, folder, port, bootstrap, log } = options
process.on('disconnect', () => process.exit(0))

/** Submits at the same time. */
const WIDTH = 16
/** Tasks whose end is waited for at the same time; further ones wait with being submitted. */
const MOST_OPEN = 200

const before = readLog()
const file = openSync(log, 'a')
const write = (line: LogLine): void => void writeSync(file, `${JSON.stringify(line)}\n`)

let submitted = before.filter(({ at }) => at === 'submitted').length
let wanted = 0
let open = 0
let submitting = 0

const peer = createPeer({ agentId, folder, listen: [`/ip4/127.0.0.1/tcp/${port}`], bootstrap: [...bootstrap] })
for (const effects of ['none', 'once'] as const) {
  peer.provide(CONTRACTS[effects], async ({ id, ms }, { signal }) => {
    write({ at: 'started', id, effects, by: `${agentId} (${process.pid}) at ${Date.now()}` })
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(resolve, ms)
      signal.addEventListener('abort', () => {
        clearTimeout(timer)
        reject(signal.reason)
      })
    })
    return { id }
  })
}
peer.events.on('task.acknowledged', ({ taskId }) => write({ at: 'acknowledged', task: taskId }))
await peer.start()

const ended = new Set(before.flatMap((line) => (line.at === 'ended' ? [line.task] : [])))
for (const line of before) {
  if (line.at === 'handed over' && !ended.has(line.task)) void follow(peer.task(CONTRACTS[line.effects], line.task))
}
process.send?.('ready')
const telling = setInterval(() => process.send?.({ submitted, open: open + submitting } satisfies State), 500)
const working = setInterval(work, 10)

process.on('message', async (order: Order) => {
  if ('submit' in order) {
    wanted = order.submit
    return
  }
  clearInterval(telling)
  clearInterval(working)
  await peer.stop({ drainMs: 2_000 })
  process.exit(0)
})

function work(): void {
  while (submitted < wanted && submitting < WIDTH && open < MOST_OPEN) void submitOne()
}

async function submitOne(): Promise<void> {
  const effects: Effects = Math.random() < 0.5 ? 'none' : 'once'
  const id = `${agentId}-${process.pid}-${submitted++}`
  write({ at: 'submitted', id, effects })
  submitting++
  try {
    const input = { id, ms: Math.round(Math.random() ** 4 * 400) }
    const handle = await peer.submit(CONTRACTS[effects], input, { timeoutMs: 5_000 })
    write({ at: 'handed over', id, effects, task: handle.id, acknowledged: handle.acknowledged })
    void follow(handle)
  } catch (error) {
    write({ at: 'refused', id, code: HermesError.from(error).code })
  } finally {
    submitting--
  }
}

async function follow(handle: TaskHandle<(typeof CONTRACTS)[Effects]>): Promise<void> {
  open++
  const code = await handle.result().then(
    () => 'OK',
    (error: unknown) => HermesError.from(error).code,
  )
  open--
  if (code !== 'STOPPED') write({ at: 'ended', task: handle.id, code })
}

/** The last line may have been cut off by a kill. */
function readLog(): LogLine[] {
  let text = ''
  try {
    text = readFileSync(log, 'utf8')
  } catch {
    return []
  }
  const lines = text.split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line) as LogLine)
}
