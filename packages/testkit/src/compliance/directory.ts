import type { DirectorySource, Registration } from 'hermes-peer'
import { DIRECTORY_CHECKS } from './directory-checks.ts'

/** One peer that uses a directory. */
export interface DirectoryMember {
  readonly source: DirectorySource
  /** What it would register, with no capability in it. */
  readonly self: Omit<Registration, 'capabilities' | 'leaseMs'>
}

/** One directory, and the ways to look at it from several peers. */
export interface DirectoryHome {
  /** A peer of its own, whose source is open. Called with a name for each peer. */
  member(name: string): Promise<DirectoryMember>
  /** Makes it known that a peer offers these, in place of what it offered. Default: the peer registers. */
  offer?(member: DirectoryMember, capabilities: readonly string[]): Promise<void>
  /** Lets some time pass, between two looks at what may be on its way. */
  pause(): Promise<void>
  /** Such looks before it counts as lost. Default 500. */
  readonly looks?: number
  /** Registrations that are taken back are gone at once. Default true; else they end by themselves some time. */
  readonly withdraws?: boolean
  /** Present when registrations run out: their lease in these checks, and the way to let time pass. */
  readonly lease?: { readonly ms: number; pass(ms: number): Promise<void> }
  /** Present when the directory can be lost and come back, with or without what was written there. */
  readonly outage?: {
    begin(): Promise<void>
    end(): Promise<void>
    /** A signal that fires when a question has waited for long enough that nobody will answer it. */
    enough(): AbortSignal
  }
  dispose(): Promise<void>
}

export type MakeDirectoryHome = () => Promise<DirectoryHome>

/** One promise of `DirectorySource`. `run` rejects with an assertion error when it is not kept. */
export interface DirectoryCheck {
  readonly name: string
  run(): Promise<void>
}

/**
 * What each implementation of `DirectorySource` must do, as plain functions for any test runner:
 * `for (const { name, run } of directoryCompliance(makeHome)) test(name, run)`. Checks of what a directory does not have pass.
 */
export function directoryCompliance(makeHome: MakeDirectoryHome): DirectoryCheck[] {
  return Object.entries(DIRECTORY_CHECKS).map(([name, check]) => ({
    name,
    async run() {
      const home = await makeHome()
      const members: DirectoryMember[] = []
      try {
        await check(home, async (member) => {
          const made = await home.member(member)
          members.push(made)
          return made
        })
      } finally {
        await Promise.all(members.map(({ source }) => source.close()))
        await home.dispose()
      }
    },
  }))
}
