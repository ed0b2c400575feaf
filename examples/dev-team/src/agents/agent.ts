import { rm } from 'node:fs/promises'
import { createPeer, isHermesError, type Peer } from 'hermes-peer'
import type { z } from 'zod'
import type { AgentEvent } from '../events.ts'
import { isFailure } from '../failures.ts'
import { printable } from '../process/printable.ts'
import { type CommonConfig, readConfig } from './config.ts'
import { forwardCalls, type WorkNames } from './forward-calls.ts'

/** What an agent's own part is given. */
export interface Agent<Config> {
  readonly config: Config
  readonly peer: Peer
  /** Aborts when the process is asked to stop, or whoever started it is gone. */
  readonly stopping: AbortSignal
  /** Tells the process that started this one, for showing only. */
  report(event: AgentEvent): void
  /** Names for the work that calls are about, by correlation, so that they can be shown. */
  readonly work: WorkNames
}

export interface AgentPart<Config> {
  config: z.ZodType<Config>
  /** Provides capabilities; called before the peer starts. */
  provide?: (agent: Agent<Config>) => void
  /** Runs once the peer has started. */
  run?: (agent: Agent<Config>) => Promise<void>
}

/** The agents do it at the same time, and each meets what another has just removed. */
const REMOVAL = { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }

/** What runs may end in this time, ms, when the job is over: whoever started the process waits 3 s for it to go. */
const DRAIN_MS = 1_000
/** The same when this agent alone is told to go, by SIGTERM: a run of a test should come to its end. */
const DRAIN_ALONE_MS = 20_000
/** After it has drained a peer closes in milliseconds; the process ends after this in any case, ms. */
const CLOSE_MS = 500

/**
 * Runs one agent as this process: a peer with its own key that knows one bootstrap address and the team's trust file. Ends
 * when it is told to, or when the process that started it is gone. At SIGTERM it refuses new work, which goes elsewhere, and ends
 * what runs: exit code 0, or 1 when that took longer than 20 s; a second SIGTERM ends it at once with 143.
 */
export async function runAgent<Config extends CommonConfig>(part: AgentPart<Config>): Promise<void> {
  const stopping = new AbortController()
  const alone = new AbortController()
  const ending = AbortSignal.any([stopping.signal, alone.signal])
  const report = (event: AgentEvent): void => {
    if (process.connected) process.send?.(event)
  }
  const bootstrap = messageOf('start')
  void messageOf('stop').then(() => stopping.abort())
  process.once('disconnect', () => stopping.abort())
  let workspace: string | undefined
  process.on('SIGTERM', () => {
    if (alone.signal.aborted) process.exit(143)
    alone.abort()
  })

  try {
    const config = await readConfig(process.argv[2], part.config)
    workspace = config.workspace
    const { addresses } = await Promise.race([bootstrap, aborted(ending)])
    const peer = createPeer({
      agentId: config.agentId,
      network: config.network,
      // Nothing but what is given here: no private folder through which agents of one machine would find each other.
      preset: 'none',
      identity: config.key,
      // Nothing of a run outlives it, and nothing of most agents a kill.
      ...(config.journal ? {} : { journal: false as const }),
      trust: { allow: config.trust },
      listen: ['/ip4/127.0.0.1/tcp/0'],
      bootstrap: addresses,
    })
    const calls = forwardCalls(peer, report)
    peer.events.on('handler.ended', ({ capability, code, cause }) => {
      if (code !== 'HANDLER_ERROR' || ending.aborted || !(cause instanceof Error)) return
      report({ type: 'agent.fault', capability, reason: printable(cause.message, 500) })
    })
    const agent = { config, peer, stopping: ending, report, work: calls.work }
    part.provide?.(agent)
    peer.events.on('peer.draining', ({ running }) => {
      if (alone.signal.aborted) report({ type: 'agent.draining', running })
    })
    peer.events.on('peer.stopped', ({ aborted }) => {
      if (alone.signal.aborted && aborted > 0) process.exitCode = 1
    })
    await peer.start()
    report({ type: 'agent.ready', addresses: [...peer.addresses] })
    const stop = (drainMs: number): Promise<unknown> =>
      Promise.race([peer.stop({ drainMs }), new Promise((resolve) => setTimeout(resolve, drainMs + CLOSE_MS))])
    const drained = onAbort(alone.signal).then(() => stop(DRAIN_ALONE_MS))
    await part.run?.(agent).catch((error: unknown) => {
      if (!ending.aborted) report(failed(error))
    })
    await Promise.race([onAbort(stopping.signal), drained])
    report({ type: 'agent.balance', ...calls.balance() })
    // Of what is stopped a second time nothing is waited for any more.
    if (stopping.signal.aborted) await stop(DRAIN_MS)
  } catch (error) {
    if (!ending.aborted) {
      report(failed(error))
      process.exitCode = 1
    }
  }
  // Whoever started this process was killed and can remove nothing any more.
  if (!process.connected && workspace !== undefined) await rm(workspace, REMOVAL).catch(() => {})
  // The channel flushes what was reported; a handle that a dependency left open must not keep the process.
  if (process.connected) process.disconnect()
  setImmediate(() => process.exit())
}

function failed(error: unknown): AgentEvent {
  if (isFailure(error)) return { type: 'job.failed', kind: error.kind, message: error.message, hint: error.hint }
  if (isHermesError(error))
    return { type: 'agent.failed', message: `${error.code}: ${error.message}`, hint: error.hint }
  console.error(error)
  return { type: 'agent.failed', message: (error as Error).message, hint: '' }
}

function messageOf(type: 'start' | 'stop'): Promise<{ addresses: string[] }> {
  return new Promise((resolve) => {
    const receive = (message: unknown): void => {
      const value = message as { type?: unknown; addresses?: string[] }
      if (value?.type !== type) return
      process.off('message', receive)
      resolve({ addresses: value.addresses ?? [] })
    }
    process.on('message', receive)
  })
}

function onAbort(signal: AbortSignal): Promise<void> {
  return aborted(signal).catch(() => {})
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}
