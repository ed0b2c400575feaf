import { type AgeingQueue, createAgeingQueue, type Waiting } from './queue.ts'

/** Work that is started when a place is free. */
export interface Turn extends Waiting {
  start(): void
}

/** The places of one capability: so many handlers run at a time, whatever asked for them; the rest waits. */
export interface Places {
  /** Starts it at once, or when its turn comes. False: it waits. */
  enter(turn: Turn): boolean
  /** One that was started gives its place back. */
  leave(): void
  /** Takes one that waits out of the line. */
  remove(turn: Turn): boolean
  readonly running: number
  readonly waiting: number
  /** Places taken times how long, since the beginning: what it has grown by, divided by the time, is the mean. */
  readonly busyMs: number
}

/** `most`: handlers at the same time, infinite where nothing bounds them. */
export function createPlaces({
  most,
  queue,
}: {
  most: number
  queue: Parameters<typeof createAgeingQueue>[0]
}): Places {
  const line: AgeingQueue<Turn> = createAgeingQueue(queue)
  let [running, busyMs, since] = [0, 0, queue.clock.monotonic()]
  const count = (): void => {
    const now = queue.clock.monotonic()
    busyMs += running * (now - since)
    since = now
  }
  const begin = (turn: Turn): void => {
    count()
    running++
    turn.start()
  }
  return {
    enter(turn) {
      if (running < most) {
        begin(turn)
        return true
      }
      line.push(turn)
      return false
    },
    leave() {
      count()
      running--
      while (running < most) {
        const next = line.shift()
        if (!next) return
        begin(next)
      }
    },
    remove: (turn) => line.remove(turn),
    get running() {
      return running
    },
    get waiting() {
      return line.size
    },
    get busyMs() {
      count()
      return busyMs
    },
  }
}
