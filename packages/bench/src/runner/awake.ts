import { type ChildProcess, spawn } from 'node:child_process'
import { availableParallelism } from 'node:os'

export interface Awake {
  /** Why cores may fall asleep, if they may. */
  readonly problem: string | undefined
  stop(): void
}

/**
 * Keeps the cores awake. A core with nothing to do halts, and in a virtual machine waking it costs 10 to 30 µs a hop, as
 * much as a whole call. One loop a core of the idle class runs only where nothing else wants to; it ends with this process.
 */
export async function keepCoresAwake(): Promise<Awake> {
  if (process.platform !== 'linux') return { problem: 'only Linux has an idle class', stop: () => {} }
  const script = `while kill -0 ${process.pid} 2>/dev/null; do i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; done`
  const loops: ChildProcess[] = []
  const started = Array.from({ length: availableParallelism() }, () => {
    const loop = spawn('nice', ['-n', '19', 'chrt', '-i', '0', 'sh', '-c', script], { stdio: 'ignore' })
    loops.push(loop)
    return new Promise<string | undefined>((resolve) => {
      loop.on('error', (error) => resolve(error.message))
      loop.on('exit', (code) => resolve(code === null ? undefined : 'chrt (of util-linux) does not work here'))
      setTimeout(() => resolve(undefined), 200)
    })
  })
  const problem = (await Promise.all(started)).find((one) => one !== undefined)
  return {
    problem,
    stop: () => {
      for (const loop of loops) loop.kill('SIGKILL')
    },
  }
}
