import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { program } from '../../programs/program.ts'

export interface Reply {
  readonly value?: unknown
  readonly error?: { readonly code: string; readonly message: string; readonly hint: string }
}

/** A journal in a process of its own. */
export interface JournalProcess {
  readonly child: ChildProcess
  ask(order: object): Promise<Reply>
  /** Begins to write from that number on; calls back for each number that was acknowledged. */
  write(from: number, acknowledged: (number: number) => void): void
  kill(): Promise<void>
}

export interface LaunchOptions {
  readonly folder: string
  readonly spareBytes?: number
  /** The largest file it may write, in blocks of the shell's `ulimit -f`. */
  readonly fileBlocks?: number
}

export async function launchJournal({ folder, spareBytes = 1, fileBlocks }: LaunchOptions): Promise<JournalProcess> {
  const argv = [process.execPath, await program('test/journal/support/child'), folder, String(spareBytes)]
  const [command = '', ...args] =
    fileBlocks === undefined ? argv : ['sh', '-c', `ulimit -f ${fileBlocks}; exec "$@"`, 'sh', ...argv]
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  const exited = once(child, 'close')
  const ask = async (order: object): Promise<Reply> => {
    const answer = once(child, 'message')
    child.send(order)
    const [reply] = await Promise.race([
      answer,
      exited.then(([code, signal]) => {
        throw new Error(`the process ended with ${code ?? signal} instead of answering ${JSON.stringify(order)}`)
      }),
    ])
    return reply as Reply
  }
  return {
    child,
    ask,
    write(from, acknowledged) {
      let rest = ''
      child.stdout?.setEncoding('utf8').on('data', (text: string) => {
        const lines = (rest + text).split('\n')
        rest = lines.pop() as string
        for (const line of lines) acknowledged(Number(line))
      })
      child.send({ write: from })
    },
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
  }
}
