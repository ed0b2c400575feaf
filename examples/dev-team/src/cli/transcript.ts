import type { JobEvent } from '../events.ts'
import { printable } from '../process/printable.ts'
import { short } from '../search/confirm.ts'

/** What people read of an event: one line without its time, undefined for what only `--json` shows. */
export function describe(event: JobEvent): string | undefined {
  switch (event.type) {
    case 'team.found':
      return `pm found ${count(event.testers, 'tester')}, ${event.coder}, ${event.reviewer}`
    case 'call.chosen':
      // A further attempt is told as a failover; the coder's many trials are told as their result.
      if (event.agent !== 'pm' || event.attempt > 1) return undefined
      return `pm → ${event.to} ${event.capability}${about(event.work)}${event.reasons.length > 0 ? `, ${event.reasons.join(', ')}` : ''}`
    case 'call.failover':
      return `same work → ${event.to} (${event.capability}${about(event.work)}, effects ${event.effects}; ${event.from}: ${event.code})`
    case 'call.failed':
      return `${event.agent}: ${event.capability}${about(event.work)} failed with ${event.code}`
    case 'agent.killed':
      return `${event.agent} killed with kill -9 ${event.commit === undefined ? 'in the middle of the repair' : `while it ran ${short(event.commit)}`}`
    case 'agent.restarted':
      return `${event.agent} started again with the same key, journal and notes (life ${event.life})`
    case 'agent.draining':
      return `${event.agent} was told to end: takes no new work, ends what runs (${event.running})`
    case 'job.resumed':
      return `pm goes on where it was: ${list([count(event.runs, 'run'), ...(event.culprit === undefined ? [] : [`culprit ${short(event.culprit)}`]), ...(event.task === undefined ? [] : [`its task at ${event.task.agent} (${event.task.id})`])])} taken from its notes`
    case 'agent.fault':
      return `${event.agent} failed at ${event.capability}: ${event.reason}`
    case 'agent.lost':
      return event.how === 'exit code 0' ? `${event.agent} ended` : `${event.agent} ended unexpectedly (${event.how})`
    case 'search.confirmed':
      return `good passes, bad fails twice: ${event.summary}`
    case 'search.round':
      return `round ${event.round}: ${count(event.suspects, 'suspect')}, ${event.commits.length} tested at once`
    case 'search.verdict':
      return `${short(event.commit)} ${{ pass: 'passes', fail: 'fails', skip: 'cannot be tested' }[event.verdict]}`
    case 'search.cancelled':
      return `run of ${short(event.commit)} cancelled: ${short(event.because)} told more`
    case 'search.culprit':
      return `culprit ${short(event.commit)} "${event.subject}": ${count(event.rounds, 'round')} (alone: ${event.alone})`
    case 'repair.submitted':
      return `pm → ${event.to} repair ${short(event.commit)}, as a task (${event.taskId})`
    case 'repair.planned':
      return `${event.by} plans to reduce the reversal: ${count(event.lines, 'line')} of ${list(event.files)}${clash(event.conflicts)}`
    case 'repair.confirmed':
      return `pm approves the plan`
    case 'repair.progress':
      return `${event.by} ${Math.round(event.fraction * 100)} %: ${printable(event.note)}`
    case 'repair.reduced':
      return `${event.by}: ${event.minimal ? 'smallest' : 'small'} reversal, ${count(event.lines, 'line')} of ${list(event.files)} (${count(event.trials, 'trial')})`
    case 'repair.proposal':
      return `${event.by}: patch of the model ${event.accepted ? 'counts' : 'does not count'}, ${event.note}`
    case 'review.done':
      return `${event.by}: ${event.suite}, ${event.types}${event.accepted ? '' : ` — refuses the ${event.of} reversal`}`
    default:
      return undefined
  }
}

/** `1 line`, `2 lines`. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}

function about(work: string | undefined): string {
  return work === undefined ? '' : ` ${short(work)}`
}

function list(files: readonly string[]): string {
  return files.length <= 3 ? files.join(', ') : `${files.length} files`
}

function clash(conflicts: readonly string[]): string {
  return conflicts.length === 0 ? '' : `; later commits changed the same lines in ${list(conflicts)}, which stay`
}
