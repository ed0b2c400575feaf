import { readdirSync, readFileSync } from 'node:fs'

/** CPU time so far: of some processes, in ns, and of the whole machine, in ticks of 10 ms. */
interface Reading {
  readonly ns: number
  readonly busy: number
  readonly all: number
}

/** CPU time of the processes, over all their threads. NaN where the system does not tell (only Linux does). */
export function readCpu(pids: readonly number[]): Reading {
  try {
    let ns = 0
    for (const pid of pids) {
      for (const thread of readdirSync(`/proc/${pid}/task`)) {
        ns += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0])
      }
    }
    return { ns, ...readMachine() }
  } catch {
    return { ns: Number.NaN, busy: Number.NaN, all: Number.NaN }
  }
}

/** Ticks of all cores. What runs at nice 19, such as the loops that keep cores awake, counts as idle. */
export function readMachine(): { busy: number; all: number } {
  const line = readFileSync('/proc/stat', 'utf8').split('\n', 1)[0] ?? ''
  const [user = 0, nice = 0, system = 0, idle = 0, io = 0, irq = 0, softIrq = 0, steal = 0] = line
    .split(/\s+/)
    .slice(1)
    .map(Number)
  const busy = user + system + irq + softIrq + steal
  return { busy, all: busy + nice + idle + io }
}

/** CPU µs that the processes used since a reading, and the share of the machine that other work took meanwhile. */
export function cpuSince(before: Reading, pids: readonly number[]): { cpuUs: number; otherWork: number } {
  const now = readCpu(pids)
  const ns = now.ns - before.ns
  const others = now.busy - before.busy - ns / 1e7
  return { cpuUs: ns / 1000, otherWork: Math.max(0, others / Math.max(1, now.all - before.all)) }
}

/** Resident memory of a process, MB; NaN when it is gone or the system does not tell. */
export function residentMb(pid: number): number {
  try {
    const kb = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return Number(kb) / 1024
  } catch {
    return Number.NaN
  }
}
