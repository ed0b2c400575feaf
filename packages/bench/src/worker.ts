// One process of a measurement: `node worker.js '<WorkerStart as JSON>'`, forked by the runner.
import { setTimeout as sleep } from 'node:timers/promises'
import { epochMs } from './measure/clock.ts'
import type { FromWorker, ToWorker, WorkerStart } from './messages.ts'
import { envelope } from './payload.ts'
import type { Row, RowClient } from './peers/peer.ts'
import { ROWS } from './rows.ts'
import type { Order } from './scenarios/scenario.ts'

/** How long a client tries to get its first answer, ms. */
const FIRST_ANSWER_MS = 20_000
/** How long an orderly end may take, ms. */
const CLOSE_MS = 500

const start = JSON.parse(process.argv[2] ?? '') as WorkerStart
const say = (message: FromWorker) => void process.send?.(message)
const fail = (error: unknown) => say({ is: 'failed', message: error instanceof Error ? error.message : String(error) })

// The runner is gone: nobody is left to measure for.
process.on('disconnect', () => process.exit(0))
process.on('unhandledRejection', fail)

try {
  const row = await load()
  await (start.role === 'server' ? serve(row) : ask(row))
} catch (error) {
  fail(error)
}

function load(): Promise<Row> {
  const entry = ROWS.find((one) => one.name === start.row)
  if (entry === undefined) throw new Error(`no row ${start.row}`)
  return entry.load()
}

async function serve(row: Row): Promise<void> {
  const joinsAtMs = epochMs()
  const server = await row.startServer(start.context)
  say({ is: 'ready', address: server.address, joinsAtMs })
  onOrders(server, async () => {
    throw new Error('a server measures nothing')
  })
}

async function ask(row: Row): Promise<void> {
  const client = await firstAnswer(row)
  say({ is: 'first' })
  // Not before the first answer: cold start is the row's own time.
  const { measure } = await import('./scenarios/run.ts')
  onOrders(client, (order) =>
    measure({ client, notify: (note, detail) => say({ is: 'note', note, ...(detail && { detail }) }) }, order),
  )
}

/** Tries until the server answers, and checks what it answers. */
async function firstAnswer(row: Row): Promise<RowClient> {
  const request = envelope(0)
  let client: RowClient | undefined
  for (const end = Date.now() + FIRST_ANSWER_MS; ; ) {
    try {
      client ??= await row.startClient(start.context)
      const answer = await client.request(request)
      if (answer.id !== request.id || answer.body.text !== request.body.text) throw new Error('the answer is no echo')
      return client
    } catch (error) {
      if (Date.now() > end) throw error
      await sleep(5)
    }
  }
}

function onOrders(end: { close(): Promise<void> }, measure: (order: Order) => Promise<Record<string, number>>): void {
  process.on('message', (message: ToWorker) => {
    if (message.do === 'measure') {
      measure(message.order).then((figures) => say({ is: 'result', figures }), fail)
      return
    }
    setTimeout(() => process.exit(0), CLOSE_MS).unref()
    end.close().then(() => process.exit(0), fail)
  })
}
