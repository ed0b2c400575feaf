/** What trust knows of an agent beyond its key: the principals `team:<team>` and `role:<role>` of a policy. */
export interface Membership {
  /** Absent: of no team. */
  readonly team?: string
  readonly roles: readonly string[]
}
