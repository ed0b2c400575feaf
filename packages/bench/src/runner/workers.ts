import { type ChildProcess, fork } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { FromWorker, ToWorker, WorkerStart } from '../messages.ts'
import type { Figures, Order } from '../scenarios/scenario.ts'

/** A process that does not answer for this long is stuck, ms. */
const PATIENCE_MS = 40_000
/** How long an orderly end may take before the process is killed, ms. */
const GRACE_MS = 1_000
/** Of stderr, for the message when a process dies; characters. */
const KEPT_STDERR = 2_000

type Kind = FromWorker['is']
type Message<K extends Kind> = Extract<FromWorker, { is: K }>

export interface Worker {
  readonly pid: number
  /** `performance.now()` of the runner when it was started. */
  readonly startedAt: number
  /** The next message of that kind; rejects when the process fails, ends, or says nothing for 40 s. */
  next<K extends Kind>(kind: K): Promise<Message<K>>
  measure(order: Order): Promise<Figures>
  send(message: ToWorker): void
  /** `kill -9`. */
  kill(): void
  /** Asks it to end, then makes it. */
  end(): Promise<void>
}

export interface Workers {
  start(options: WorkerStart): Worker
  /** Ends all that are left; for the end of a round. */
  endAll(): Promise<void>
  /** Kills all that are left at once; for the end of the runner. */
  killAll(): void
}

export function createWorkers(): Workers {
  // Bounded by the processes of one round: each leaves when it ends.
  const live = new Map<ChildProcess, Worker>()
  return {
    start(options) {
      const [child, worker] = startWorker(options)
      live.set(child, worker)
      child.on('exit', () => live.delete(child))
      return worker
    },
    endAll: async () => {
      await Promise.all([...live.values()].map((worker) => worker.end()))
    },
    killAll: () => {
      for (const child of live.keys()) child.kill('SIGKILL')
    },
  }
}

function startWorker(options: WorkerStart): [ChildProcess, Worker] {
  const startedAt = performance.now()
  const child = fork(fileURLToPath(new URL('../worker.js', import.meta.url)), [JSON.stringify(options)], {
    execArgv: [],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  const who = `${options.row} ${options.role}`
  let stderr = ''
  child.stderr?.on('data', (chunk) => {
    stderr = (stderr + chunk).slice(-KEPT_STDERR)
  })
  const inbox = createInbox(who)
  child.on('message', (message: FromWorker) => inbox.deliver(message))
  const gone = new Promise<void>((resolve) => {
    child.on('exit', () => {
      inbox.close(new Error(`${who} ended${stderr === '' ? '' : `: ${stderr.trim()}`}`))
      resolve()
    })
    child.on('error', (error) => {
      inbox.close(error)
      resolve()
    })
  })
  const send = (message: ToWorker) => {
    if (child.connected) child.send(message)
  }
  const worker: Worker = {
    pid: child.pid ?? -1,
    startedAt,
    next: inbox.next,
    measure: async (order) => {
      send({ do: 'measure', order })
      return (await inbox.next('result')).figures
    },
    send,
    kill: () => void child.kill('SIGKILL'),
    end: async () => {
      send({ do: 'exit' })
      await Promise.race([gone, sleep(GRACE_MS, undefined, { ref: false })])
      child.kill('SIGKILL')
      await gone
    },
  }
  return [child, worker]
}

/** Messages of one process, in order, for those who wait for one kind of them. */
function createInbox(who: string) {
  // Bounded by the protocol: a worker says one thing for each order, and two in between.
  const queue: FromWorker[] = []
  let closed: Error | undefined
  let wake = () => {}

  async function next<K extends Kind>(kind: K): Promise<Message<K>> {
    for (const end = performance.now() + PATIENCE_MS; ; ) {
      const at = queue.findIndex((message) => message.is === kind || message.is === 'failed')
      const [found] = at < 0 ? [] : queue.splice(at, 1)
      if (found?.is === 'failed' && kind !== 'failed') throw new Error(`${who}: ${found.message}`)
      if (found !== undefined) return found as Message<K>
      if (closed !== undefined) throw closed
      const left = end - performance.now()
      if (left <= 0) throw new Error(`${who} has not said "${kind}" for ${PATIENCE_MS / 1000} s`)
      let timer: NodeJS.Timeout | undefined
      await new Promise<void>((resolve) => {
        wake = resolve
        timer = setTimeout(resolve, left)
      })
      clearTimeout(timer)
    }
  }
  return {
    next,
    deliver: (message: FromWorker) => {
      queue.push(message)
      wake()
    },
    close: (reason: Error) => {
      closed ??= reason
      wake()
    },
  }
}
