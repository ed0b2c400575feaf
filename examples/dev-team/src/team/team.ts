import type { AgentEvent, TeamEvent } from '../events.ts'
import { failure } from '../failures.ts'
import { withoutSecrets } from '../process/environment.ts'
import { printable } from '../process/printable.ts'
import { type AgentProcess, startAgentProcess } from './agent-process.ts'
import type { Programs } from './programs.ts'
import type { Member } from './roster.ts'

export type Observe = (agent: string, event: AgentEvent | TeamEvent) => void

export interface JobResult {
  readonly file: string
  readonly reversalFile: string | undefined
  readonly traceId: string
  readonly earlierTraceIds: readonly string[]
}

/** The six processes. */
export interface Team {
  /** Resolves when pm has written the result. Fails with what pm could not go on with, or `OTHER` when an agent is lost. */
  readonly result: Promise<JobResult>
  /** `kill -9` of one agent, as a fault that is meant. */
  kill(agentId: string): void
  /** Stops all and waits until every process has ended. */
  stop(): Promise<void>
  /** Kills all at once. */
  killAll(): void
}

/** Lives of an agent that is started again whenever it is killed: one that dies each time is a fault to be told. */
const MOST_LIVES = 4

/**
 * Starts all agents at the same time; pm's address, known once it listens, is the one bootstrap address of the others. An agent
 * among `restarted` that is killed is started again as it was, and joins through the address of another one.
 */
export function startTeam({
  members,
  programs,
  restarted = [],
  observe,
  env = process.env,
}: {
  members: readonly Member[]
  programs: Programs
  restarted?: readonly string[]
  observe: Observe
  env?: NodeJS.ProcessEnv
}): Team {
  const agents = new Map<string, AgentProcess>()
  const addresses = new Map<string, readonly string[]>()
  const lives = new Map<string, number>()
  const roleOf = new Map(members.map(({ agentId, role }) => [agentId, role]))
  const meant = new Set<string>()
  let stopping = false
  let settle: { resolve: (result: JobResult) => void; reject: (error: unknown) => void } | undefined
  const result = new Promise<JobResult>((resolve, reject) => {
    settle = { resolve, reject }
  })
  // Whoever waits for the result hears of it; a stop before that is no fault.
  result.catch(() => {})

  const onEvent = (agentId: string, event: AgentEvent): void => {
    observe(agentId, event)
    const role = roleOf.get(agentId)
    if (event.type === 'agent.ready') {
      addresses.set(agentId, event.addresses)
      // Those that have started already take no notice.
      if (role === 'pm')
        for (const other of agents.values()) if (other.agentId !== agentId) other.start(event.addresses)
    }
    if (event.type === 'agent.failed') settle?.reject(failure('OTHER', `${agentId}: ${event.message}`, event.hint))
    if (role !== 'pm') return
    if (event.type === 'job.failed') settle?.reject(failure(event.kind, event.message, event.hint))
    if (event.type === 'job.done') settle?.resolve(event)
  }

  const onEnd = (agentId: string, how: string): void => {
    if (stopping) return
    addresses.delete(agentId)
    const life = (lives.get(agentId) ?? 1) + 1
    if (restarted.includes(agentId) && how === 'SIGKILL' && life <= MOST_LIVES) {
      lives.set(agentId, life)
      observe(agentId, { type: 'agent.restarted', agent: agentId, life })
      launch(members.find((member) => member.agentId === agentId) as Member)
      return
    }
    if (meant.has(agentId)) return
    observe(agentId, { type: 'agent.lost', agent: agentId, how })
    const testers = [...agents.values()].filter((agent) => roleOf.get(agent.agentId) === 'tester' && agent.running)
    if (roleOf.get(agentId) === 'tester' && testers.length > 0) return
    const said = printable(agents.get(agentId)?.errors() ?? '', 300)
    settle?.reject(
      failure(
        'OTHER',
        `${agentId} ended unexpectedly (${how})${said === '' ? '' : `: ${said}`}`,
        'Nothing was changed; run it again.',
      ),
    )
  }

  const launch = ({ agentId, role, configPath }: Member): void => {
    const agent = startAgentProcess({
      agentId,
      program: programs.path(role),
      execArgv: programs.execArgv,
      configPath,
      env: role === 'coder' ? env : withoutSecrets(env),
      onEvent: (event) => onEvent(agentId, event),
    })
    agents.set(agentId, agent)
    void agent.ended.then((how) => onEnd(agentId, how))
    // The first of all knows nobody; another life of it knows one of those that are there.
    if (role === 'pm' || addresses.size > 0) agent.start([...addresses.values()][0] ?? [])
  }
  for (const member of members) launch(member)

  return {
    result,
    kill(agentId) {
      meant.add(agentId)
      agents.get(agentId)?.kill()
    },
    async stop() {
      stopping = true
      await Promise.all([...agents.values()].map((agent) => agent.stop()))
    },
    killAll() {
      stopping = true
      for (const agent of agents.values()) agent.kill()
    },
  }
}
