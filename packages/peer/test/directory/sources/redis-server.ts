import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createConnection, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from '../../waiting.ts'

/** A Redis of its own on loopback, that keeps nothing on disk. Nothing of it is left after `dispose`. */
export interface RedisServer {
  readonly url: string
  /** Kills it; what was written is gone. */
  kill(): Promise<void>
  /** Stops it in the middle of whatever it does, and lets it go on: its connections stay open meanwhile. */
  freeze(): void
  thaw(): void
  /** Starts it, at the same port each time; resolves when it answers. */
  start(): Promise<void>
  dispose(): Promise<void>
}

/** Why there is no Redis to test with, undefined when there is one. */
export function noRedis(): string | undefined {
  try {
    execFileSync('redis-server', ['--version'], { stdio: 'ignore' })
    return undefined
  } catch {
    return 'redis-server is not installed'
  }
}

export async function redisServer(): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), 'hermes-redis-'))
  const port = await freePort()
  let child: ChildProcess | undefined
  const kill = async (): Promise<void> => {
    const dying = child
    child = undefined
    if (!dying || dying.exitCode !== null || dying.signalCode !== null) return
    const gone = new Promise((resolve) => dying.once('exit', resolve))
    dying.kill('SIGKILL')
    await gone
  }
  const onExit = (): void => {
    child?.kill('SIGKILL')
  }
  process.on('exit', onExit)
  const server: RedisServer = {
    url: `redis://127.0.0.1:${port}`,
    kill,
    freeze: () => void child?.kill('SIGSTOP'),
    thaw: () => void child?.kill('SIGCONT'),
    async start() {
      const options = [
        '--port',
        String(port),
        '--bind',
        '127.0.0.1',
        '--save',
        '',
        '--appendonly',
        'no',
        '--dir',
        folder,
      ]
      const started = spawn('redis-server', options, { stdio: 'ignore' })
      child = started
      let answered = false
      const look = async (): Promise<void> => {
        while (!answered && child === started) answered = await answers(port)
      }
      void look()
      await until(() => answered || started.exitCode !== null, 'redis-server to answer')
      if (!answered) throw new Error(`redis-server ended with ${started.exitCode}`)
    },
    async dispose() {
      await kill()
      process.off('exit', onExit)
      rmSync(folder, { recursive: true, force: true })
    },
  }
  await server.start()
  return server
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(port, '127.0.0.1')
    const end = (is: boolean) => {
      socket.destroy()
      resolve(is)
    }
    socket.on('error', () => setTimeout(() => end(false), 10))
    socket.on('data', (data) => end(data.toString().startsWith('+PONG')))
    socket.on('connect', () => socket.write('PING\r\n'))
  })
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() =>
        address && typeof address === 'object' ? resolve(address.port) : reject(new Error('no port')),
      )
    })
  })
}
