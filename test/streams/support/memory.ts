import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** What this process takes of the machine's memory at most, beyond what it took at the start. */
export function resident() {
  let before = 0
  let most = 0
  const look = (): void => {
    most = Math.max(most, process.memoryUsage.rss())
  }
  const start = (): void => {
    collect()
    before = process.memoryUsage.rss()
    most = before
  }
  start()
  const growth = (): number => {
    look()
    return most - before
  }
  return { start, look, growth }
}
