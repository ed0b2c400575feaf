import { type ChildProcess, fork } from 'node:child_process'
import type { PeerOptions } from 'hermes-peer'
import { until } from '../../../packages/peer/test/waiting.ts'
import { program } from '../../programs/program.ts'
import type { FromChild, ToChild } from './process-messages.ts'

export interface Child {
  readonly process: ChildProcess
  readonly told: readonly FromChild[]
  send(message: ToChild): void
  /** Resolves with the first message of that type. */
  message<T extends FromChild['type']>(type: T): Promise<Extract<FromChild, { type: T }>>
  kill(signal: NodeJS.Signals): void
  /** Kills it and resolves when it is gone. */
  end(): Promise<void>
}

/** A peer in a process of its own; whoever starts it ends it. */
export async function startChild(options: PeerOptions & { redis?: string }): Promise<Child> {
  const child = fork(await program('test/calls/support/child'), [JSON.stringify(options)], {
    execArgv: [],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const told: FromChild[] = []
  child.on('message', (message) => told.push(message as FromChild))
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const find = <T extends FromChild['type']>(type: T) =>
    told.find((message): message is Extract<FromChild, { type: T }> => message.type === type)
  const made: Child = {
    process: child,
    told,
    send: (message) => child.send(message),
    async message(type) {
      await until(() => find(type) !== undefined || child.exitCode !== null, `the child’s ${type}`, 25_000)
      const message = find(type)
      if (!message) throw new Error(`the child ended with ${child.exitCode} before it told of ${type}`)
      return message
    },
    kill: (signal) => child.kill(signal),
    async end() {
      child.kill('SIGKILL')
      await exited
    },
  }
  try {
    await made.message('ready')
  } catch (error) {
    await made.end()
    throw error
  }
  return made
}
