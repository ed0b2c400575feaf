/** What a run is about. */
export interface Assignment {
  /** Bare repository that borrows the objects of the input. */
  readonly repository: string
  readonly good: string
  readonly bad: string
  /** After `good`, up to `bad`, oldest first. */
  readonly commits: readonly string[]
  readonly prefix: string
  readonly test: string
  readonly suite: string
  readonly setup: string | undefined
  readonly dependencies: { readonly root: string; readonly folders: readonly string[] }
  /** Longest run of a command, ms. */
  readonly limitMs: number
  /** Sentences about what was not looked at. */
  readonly notes: readonly string[]
}
